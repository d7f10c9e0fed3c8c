/* A wasmtime whose heap cannot be had: a limit on it would not hold, so there is no hook. */
#include <hakmem/wasm_wasmtime.h>

#include <stdio.h>

int main(void)
{
    hak_wasm_host *host = hak_wasm_host_new(NULL);
    if (!host || wasm_engine_new()) return 2;
    const int result = hak_wasmtime_hook_heap(host);
    printf("hak_wasmtime_hook_heap returns %d\n", result);
    wasm_engine_new();
    return result == -1 ? 0 : 1;
}

/* A host of guests from wasm2c that is linked without --wrap: its guests' memories would be nobody's. */
#include <hakmem/wasm_wasm2c.h>

#include <stdio.h>

int main(void)
{
    hak_wasm_host *host = hak_wasm_host_new(NULL);
    if (!host) return 2;
    const int result = hak_wasm_wasm2c_use(host, false);
    printf("hak_wasm_wasm2c_use returns %d\n", result);
    hak_wasm_host_delete(host);
    return result == -1 ? 0 : 1;
}

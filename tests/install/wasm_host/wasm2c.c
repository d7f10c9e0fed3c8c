/* A request to a guest that was compiled to C, and a reset that forgets it. */
#include <hakmem/wasm_wasm2c.h>
#include <wasm-rt-impl.h>

#include "zero.h"

#include <stdio.h>

int main(void)
{
    static Z_zero_instance_t guest;
    hak_wasm_host_options options = HAK_WASM_HOST_OPTIONS_INIT;
    options.bounds = HAK_WASM_GUARD;
    options.guard_bytes = (size_t)4 << 30;
    hak_wasm_host *host = hak_wasm_host_new(&options);
    if (hak_wasm_wasm2c_use(host, WASM_RT_MEMCHECK_SIGNAL_HANDLER) != 0) return 2;
    wasm_rt_init();
    Z_zero_init_module();
    if (wasm_rt_impl_try() != 0) return 3;
    Z_zero_instantiate(&guest);
    const char *why = "";
    hak_wasm_wasm2c_snapshot *fresh = hak_wasm_wasm2c_take(&guest, sizeof guest, &why);
    Z_zeroZ_put(&guest, 4711);
    uint32_t before = Z_zeroZ_get(&guest);
    int reset = fresh ? hak_wasm_wasm2c_reset(&guest, fresh) : -1;
    printf("%u %d %d%s\n", (unsigned)before, reset, (int)Z_zeroZ_get(&guest), why ? why : "");
    hak_wasm_wasm2c_drop(fresh);
    Z_zero_free(&guest);
    return 0;
}

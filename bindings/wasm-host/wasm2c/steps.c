/* How many steps the guests of a thread may take; they count themselves. */
#include "parts.h"

#include <hakmem/wasm_wasm2c_steps.h>

_Thread_local int64_t hak_wasm_wasm2c_left = INT64_MAX;
static _Thread_local bool spent;

void hak_wasm_wasm2c_end(void)
{
    hak_wasm_wasm2c_left = 0; /* each further step traps, too */
    spent = true;
    wasm_rt_trap(WASM_RT_TRAP_EXHAUSTION);
}

void hak_wasm_wasm2c_steps(void)
{
    const hak_wasm_tenant *tenant = hak_wasm_current().tenant;
    const uint64_t steps = tenant ? hak_wasm_step_limit(tenant) : 0;
    hak_wasm_wasm2c_left = !steps || steps > INT64_MAX ? INT64_MAX : (int64_t)steps;
    spent = false;
}

bool hak_wasm_wasm2c_spent(void)
{
    return spent;
}

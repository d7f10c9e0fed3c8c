/* How many instructions a guest may execute, by WAMR's own count (WAMR_BUILD_INSTRUCTION_METERING). Start
 * functions and the like run in environments that WAMR makes and destroys by itself: the linker's --wrap puts
 * a function of this file before the one that makes environments. */
#include "wasm_runtime.h"

#include "wasm_runtime_common.h"

#include "guest.h"

#include <limits.h>
#include <stdatomic.h>
#include <string.h>

static _Thread_local bool passed; /* the function below was called */

/* WAMR counts from a number in an int down to 0; less is no limit. False = it does not count. */
static bool set_steps(WASMExecEnv *env, const hak_wasm_tenant *tenant)
{
    const uint64_t steps = tenant ? hak_wasm_step_limit(tenant) : 0;
#if WASM_ENABLE_INSTRUCTION_METERING
    env->instructions_to_execute = !steps ? -1 : steps > INT_MAX ? INT_MAX : (int)steps;
    return true;
#else
    (void)env;
    return !steps;
#endif
}

/* NULL where the program is linked without --wrap. */
WASMExecEnv *__real_wasm_exec_env_create(struct WASMModuleInstanceCommon *instance, uint32 stack_size)
    __attribute__((weak));
WASMExecEnv *__wrap_wasm_exec_env_create(struct WASMModuleInstanceCommon *instance, uint32 stack_size);

WASMExecEnv *__wrap_wasm_exec_env_create(struct WASMModuleInstanceCommon *instance, uint32 stack_size)
{
    WASMExecEnv *env = __real_wasm_exec_env_create(instance, stack_size);
    if (env) set_steps(env, hak_wasm_current().tenant);
    passed = true;
    return env;
}

/* By an instance of a module that has nothing. */
static bool try_wrapped(hak_wasm_host *host)
{
    uint8_t nothing[] = {0, 'a', 's', 'm', 1, 0, 0, 0};
    char error[64];
    passed = false;
    hak_wasm_scope before = hak_wasm_enter(hak_wasm_host_tenant(host), HAK_WASM_OTHER);
    wasm_module_t module = wasm_runtime_load(nothing, sizeof nothing, error, sizeof error);
    wasm_module_inst_t instance =
        module ? wasm_runtime_instantiate(module, 4096, 0, error, sizeof error) : NULL;
    wasm_exec_env_t env = instance ? wasm_runtime_create_exec_env(instance, 4096) : NULL;
    if (env) wasm_runtime_destroy_exec_env(env);
    if (instance) wasm_runtime_deinstantiate(instance);
    if (module) wasm_runtime_unload(module);
    hak_wasm_leave(before);
    return passed;
}

static bool is_wrapped(hak_wasm_host *host)
{
    static atomic_bool known;
    if (!atomic_load(&known) && try_wrapped(host)) atomic_store(&known, true);
    return atomic_load(&known);
}

const char *hkw_wamr_steps_refused(const hak_wasm_tenant *tenant, wasm_module_t module)
{
    if (!hak_wasm_step_limit(tenant)) return NULL;
    if (!WASM_ENABLE_INSTRUCTION_METERING)
        return "hak_wasm_tenant_steps needs a WAMR that is built with WAMR_BUILD_INSTRUCTION_METERING";
    if (hkw_wamr_compiled(module)) return "machine code counts no steps, which hak_wasm_tenant_steps limits";
    if (!is_wrapped(hak_wasm_tenant_host(tenant)))
        return "hak_wasm_tenant_steps needs a program that is linked with --wrap=wasm_exec_env_create";
    return NULL;
}

bool hkw_wamr_steps_begin(hak_wasm_wamr *guest)
{
    return set_steps(guest->env, guest->tenant) &&
           !(hkw_wamr_compiled(guest->module) && hak_wasm_step_limit(guest->tenant));
}

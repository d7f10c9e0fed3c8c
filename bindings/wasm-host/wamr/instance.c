/* Wrappers of WAMR's calls, each with its tenant and label. */
#include "guest.h"

#include <stdio.h>

#define PAGE_BYTES UINT64_C(65536)
#define MAX_PAGES 65535u

/* Writes the text where there is room for one. */
static void say(char *error, uint32_t error_size, const char *text)
{
    if (error && error_size) snprintf(error, error_size, "%s", text);
}

/* Where WAMR takes its memory from elsewhere, no limit of the tenant's would hold. */
static bool is_hosts(const hak_wasm_tenant *tenant, wasm_module_t module, char *error, uint32_t error_size)
{
    const bool owned = hak_wasm_owns(hak_wasm_tenant_host(tenant), module);
    if (!owned) say(error, error_size, "WAMR's memory is not of the tenant's host: see hak_wasm_wamr_args");
    return owned;
}

wasm_module_t hak_wasm_wamr_load(hak_wasm_tenant *tenant, uint8_t *bytes, uint32_t size, char *error,
                                 uint32_t error_size)
{
    if (!bytes || size == 0) {
        say(error, error_size, "there is no module");
        return NULL;
    }
    if (hak_wasm_module_check(tenant, bytes, size, error, error ? error_size : 0) != 0) return NULL;
    if (!hkw_wamr_files_begin()) {
        say(error, error_size, "no memory");
        return NULL;
    }
    hak_wasm_scope before = hak_wasm_enter(tenant, HAK_WASM_LOAD);
    hkw_wamr_code_begin();
    wasm_module_t module = wasm_runtime_load(bytes, size, error, error ? error_size : 0);
    if (!module && hkw_wamr_code_refused())
        say(error, error_size, "the module's machine code does not fit into the tenant's limit");
    if (module && !is_hosts(tenant, module, error, error_size)) {
        wasm_runtime_unload(module);
        module = NULL;
    }
    hak_wasm_leave(before);
    return module;
}

/* What an instance needs to be called and reset. */
static bool prepare(hak_wasm_wamr *guest)
{
    static _Atomic uint64_t instances;
    guest->serial = ++instances;
    if (!hkw_wamr_files_hold(guest->instance, &guest->files)) return false;
    hak_wasm_enter(guest->tenant, HAK_WASM_STACK);
    guest->env = wasm_runtime_create_exec_env(guest->instance, guest->stack_size);
    return guest->env;
}

bool hkw_wamr_begin(hak_wasm_wamr *guest, char *error, uint32_t error_size)
{
    hak_wasm_host *host = hak_wasm_tenant_host(guest->tenant);
    uint64_t bytes = hkw_wamr_initial_bytes(guest->module), most = hak_wasm_slot_bytes(host);
    if (most > MAX_PAGES * PAGE_BYTES) most = MAX_PAGES * PAGE_BYTES;
    if (bytes > most) {
        char text[128];
        snprintf(text, sizeof text, "the module wants %llu bytes of linear memory, a slot has %llu",
                 (unsigned long long)bytes, (unsigned long long)most);
        say(error, error_size, text);
        return false;
    }
    const char *why = hkw_wamr_steps_refused(guest->tenant, guest->module);
    if (why) {
        say(error, error_size, why);
        return false;
    }
    uint32_t pages = (uint32_t)(most / PAGE_BYTES);
    if (hkw_wamr_max_pages(guest->module) <= pages) pages = 0; /* the module's own */
    InstantiationArgs args = {guest->stack_size, 0, pages};
    hak_wasm_scope before = hak_wasm_enter(guest->tenant, HAK_WASM_INSTANCE);
    guest->instance = wasm_runtime_instantiate_ex(guest->module, &args, error, error ? error_size : 0);
    if (guest->instance && !prepare(guest)) {
        say(error, error_size, "no memory for the instance");
        hkw_wamr_end(guest);
    }
    hak_wasm_leave(before);
    return guest->instance;
}

void hkw_wamr_end(hak_wasm_wamr *guest)
{
    if (guest->env) wasm_runtime_destroy_exec_env(guest->env);
    if (guest->instance) wasm_runtime_deinstantiate(guest->instance);
    hkw_wamr_files_release(guest->files);
    guest->env = NULL;
    guest->instance = NULL;
    guest->files = NULL;
}

hak_wasm_wamr *hak_wasm_wamr_open(hak_wasm_tenant *tenant, wasm_module_t module, uint32_t stack_size,
                                  char *error, uint32_t error_size)
{
    if (!module) {
        say(error, error_size, "there is no module");
        return NULL;
    }
    if (!is_hosts(tenant, module, error, error_size)) return NULL;
    if (hak_wasm_admit(tenant) != 0) {
        say(error, error_size, "the tenant is at a limit");
        return NULL;
    }
    hak_wasm_scope before = hak_wasm_enter(tenant, HAK_WASM_INSTANCE);
    hak_wasm_wamr *guest = hak_wasm_calloc(hak_wasm_tenant_host(tenant), 1, sizeof *guest);
    hak_wasm_leave(before);
    if (!guest) {
        say(error, error_size, "no memory for the instance");
        hak_wasm_dismiss(tenant);
        return NULL;
    }
    guest->tenant = tenant;
    guest->module = module;
    guest->stack_size = stack_size;
    if (!hkw_wamr_begin(guest, error, error_size)) {
        hak_wasm_wamr_close(guest);
        return NULL;
    }
    return guest;
}

void hak_wasm_wamr_close(hak_wasm_wamr *guest)
{
    if (!guest) return;
    hak_wasm_tenant *tenant = guest->tenant;
    hkw_wamr_end(guest);
    hak_wasm_free(hak_wasm_tenant_host(tenant), guest);
    hak_wasm_dismiss(tenant);
}

/* Before anybody uses the memory. */
static void wake(hak_wasm_wamr *guest)
{
    if (!guest->rests) return;
    guest->rests = false;
    hak_wasm_memory_wake(hak_wasm_tenant_host(guest->tenant), hkw_wamr_memory(guest->instance));
}

bool hak_wasm_wamr_call(hak_wasm_wamr *guest, const char *name, uint32_t argc, uint32_t *argv)
{
    wake(guest);
    wasm_runtime_clear_exception(guest->instance);
    wasm_function_inst_t function = name ? wasm_runtime_lookup_function(guest->instance, name) : NULL;
    if (!function) {
        wasm_runtime_set_exception(guest->instance, "no such function");
        return false;
    }
    /* The guest's module says how many there are: they would be the host's stack. */
    uint32_t arguments, results;
    hkw_wamr_cells(guest->instance, function, &arguments, &results);
    if ((!argv && argc) || argc < arguments || results > (!argv ? 0 : argc > 1 ? argc : 1)) {
        wasm_runtime_set_exception(guest->instance, "the function has other arguments or results");
        return false;
    }
    if (!hkw_wamr_steps_begin(guest)) {
        wasm_runtime_set_exception(guest->instance, "the limit on steps cannot hold for this guest");
        return false;
    }
    hak_wasm_scope before = hak_wasm_enter(guest->tenant, HAK_WASM_WASI);
    hak_wasm_guest outer = hak_wasm_guest_run((hak_wasm_guest){guest->tenant, hkw_wamr_stack, guest});
    bool ok = wasm_runtime_call_wasm(guest->env, function, argc, argv);
    hak_wasm_guest_run(outer);
    hak_wasm_leave(before);
    return ok;
}

const char *hak_wasm_wamr_exception(hak_wasm_wamr *guest)
{
    return wasm_runtime_get_exception(guest->instance);
}

wasm_module_inst_t hak_wasm_wamr_instance(hak_wasm_wamr *guest)
{
    wake(guest);
    return guest->instance;
}

wasm_exec_env_t hak_wasm_wamr_exec_env(hak_wasm_wamr *guest)
{
    wake(guest);
    return guest->env;
}

/* An engine whose linear memories come from a hak_wasm_host. */
#include "types.h"

typedef struct linear {
    hak_wasm_host *host;
    uint8_t *base;
    size_t size, slot; /* wasmtime asks often; only its own growth changes the size */
} linear;

static uint8_t *linear_get(void *env, size_t *size, size_t *capacity)
{
    linear *l = env;
    *size = l->size;
    *capacity = l->slot;
    return l->base;
}

static wasmtime_error_t *linear_grow(void *env, size_t size)
{
    linear *l = env;
    if (hak_wasm_memory_grow(l->host, l->base, size) != 0) {
        return wasmtime_error_new("hakmem: the linear memory cannot grow: over a limit, or no memory");
    }
    l->size = size;
    return NULL;
}

static void linear_free(void *env)
{
    linear *l = env;
    hak_wasm_memory_free(l->host, l->base);
    hak_wasm_free(l->host, l);
}

/* env: the host. maximum is the guest's own, which wasmtime checks. */
static wasmtime_error_t *linear_new(void *env, const wasm_memorytype_t *type, size_t minimum, size_t maximum,
                                    size_t reserved, size_t guard, wasmtime_linear_memory_t *out)
{
    (void)type;
    (void)maximum;
    hak_wasm_host *host = env;
    if (reserved > hak_wasm_slot_bytes(host) || guard > hak_wasm_guard_bytes(host)) {
        return wasmtime_error_new("hakmem: wasmtime wants more address space than the host's slots have");
    }
    linear *l = hak_wasm_alloc(host, sizeof *l);
    uint8_t *base = l ? hak_wasm_memory_new(host, minimum) : NULL;
    if (!base) {
        hak_wasm_free(host, l);
        return wasmtime_error_new("hakmem: no linear memory: over a limit, or no memory");
    }
    *l = (linear){host, base, minimum, hak_wasm_slot_bytes(host)};
    *out = (wasmtime_linear_memory_t){l, linear_get, linear_grow, linear_free};
    return NULL;
}

/* The C API cannot be asked which allocation strategy a config has: an instance shows whether its memory is
 * the host's. */
static wasmtime_error_t *check(hak_wasm_host *host, wasm_engine_t *engine)
{
    /* (module (memory (export "m") 1)) */
    static const uint8_t binary[] = {0, 'a', 's', 'm', 1, 0, 0, 0, 5, 3, 1, 0, 1, 7, 5, 1, 1, 'm', 2, 0};
    wasmtime_module_t *module = NULL;
    wasmtime_error_t *error = wasmtime_module_new(engine, binary, sizeof binary, &module);
    if (error) return error;
    wasmtime_store_t *store = wasmtime_store_new(engine, NULL, NULL);
    wasmtime_context_t *context = wasmtime_store_context(store);
    wasmtime_instance_t instance;
    wasm_trap_t *trap = NULL;
    wasmtime_extern_t memory;
    error = wasmtime_instance_new(context, module, NULL, 0, &instance, &trap);
    if (!error) {
        wasmtime_instance_export_get(context, &instance, "m", 1, &memory);
        if (!hak_wasm_is_memory(host, wasmtime_memory_data(context, &memory.of.memory))) {
            error = wasmtime_error_new(
                "hakmem: this configuration ignores the memory creator; leave out the pooling strategy");
        }
    }
    wasmtime_store_delete(store);
    wasmtime_module_delete(module);
    return error;
}

void hkw_engine_settings(wasm_config_t *config, size_t slot, size_t guard)
{
    wasmtime_config_memory_init_cow_set(config, false);
    wasmtime_config_memory_may_move_set(config, false);
    wasmtime_config_memory_reservation_set(config, slot);
    wasmtime_config_memory_guard_size_set(config, guard);
}

static wasm_engine_t *new_engine(hak_wasm_host *host, wasm_config_t *config, wasmtime_error_t **error)
{
    if (!config) {
        *error = wasmtime_error_new("hakmem: there is no configuration");
        return NULL;
    }
    if (hak_wasm_host_bounds(host) != HAK_WASM_GUARD) {
        wasm_config_delete(config);
        *error = wasmtime_error_new("hakmem: wasmtime needs a host with bounds = HAK_WASM_GUARD");
        return NULL;
    }
    wasmtime_memory_creator_t creator = {host, linear_new, NULL};
    wasmtime_config_host_memory_creator_set(config, &creator);
    hkw_engine_settings(config, hak_wasm_slot_bytes(host), hak_wasm_guard_bytes(host));
    hak_wasm_scope before = hak_wasm_enter(hak_wasm_host_tenant(host), HAK_WASM_OTHER);
    wasm_engine_t *engine = wasm_engine_new_with_config(config);
    *error = engine ? check(host, engine) : wasmtime_error_new("hakmem: no engine");
    if (*error && engine) {
        wasm_engine_delete(engine);
        engine = NULL;
    }
    hak_wasm_leave(before);
    return engine;
}

wasm_engine_t *hak_wasmtime_engine_new(hak_wasm_host *host, wasm_config_t *config, wasmtime_error_t **error)
{
    wasmtime_error_t *unasked = NULL;
    wasm_engine_t *engine = new_engine(host, config, error ? error : &unasked);
    if (unasked) wasmtime_error_delete(unasked);
    return engine;
}

/* Modules and instances, their images and resets. */
#include "types.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct hak_wasmtime_image {
    const hak_wasmtime_module *module;
    hak_wasm_image *memory;
    wasmtime_val_t globals[];
};

/* The tenant is charged with this much for the module, no longer with what it was charged before. */
static bool pay(hak_wasmtime_module *m, size_t bytes)
{
    if (bytes > m->charged && hak_wasm_charge(m->tenant, bytes - m->charged) != 0) return false;
    if (bytes < m->charged) hak_wasm_uncharge(m->tenant, m->charged - bytes);
    m->charged = bytes;
    return true;
}

/* It has pages of its own. */
static size_t code_bytes(const wasmtime_module_t *module)
{
    enum { PAGE = 4096 };
    void *from, *to;
    wasmtime_module_image_range(module, &from, &to);
    return ((size_t)((char *)to - (char *)from) + PAGE - 1) / PAGE * PAGE;
}

/* Folders keep code under this name. wasmtime itself refuses code of another version or configuration. */
static const char runtime[] = "wasmtime " WASMTIME_VERSION;

/* Code that is kept, if the engine takes it. *error: the folder cannot be used. */
static void take_kept(hak_wasmtime_module *m, const char *folder, const uint8_t *bytes, size_t size,
                      wasmtime_error_t **error)
{
    char why[256];
    hak_wasm_code code;
    const int found = hak_wasm_code_get(folder, runtime, bytes, size, &code, why, sizeof why);
    if (found < 0) *error = wasmtime_error_new(why);
    if (found <= 0) return;
    wasmtime_error_t *other = wasmtime_module_deserialize(m->engine, code.bytes, code.size, &m->module);
    if (other) {
        wasmtime_error_delete(other);
        m->module = NULL;
    }
    hak_wasm_code_free(&code);
}

/* A folder without room is no reason to refuse a module that is compiled. */
static void keep(const hak_wasmtime_module *m, const char *folder, const uint8_t *bytes, size_t size)
{
    wasm_byte_vec_t code;
    wasmtime_error_t *error = wasmtime_module_serialize(m->module, &code);
    if (error) {
        wasmtime_error_delete(error);
        return;
    }
    hak_wasm_code_put(folder, runtime, bytes, size, code.data, code.size, NULL, 0);
    wasm_byte_vec_delete(&code);
}

/* folder NULL = none. */
static void make_code(hak_wasmtime_module *m, const char *folder, const uint8_t *bytes, size_t size,
                      wasmtime_error_t **error)
{
    if (folder) take_kept(m, folder, bytes, size, error);
    if (m->module || *error) return;
    *error = wasmtime_module_new(m->engine, bytes, size, &m->module);
    if (!*error && folder) keep(m, folder, bytes, size);
}

static const char *compile(hak_wasmtime_module *m, const hkw_module *binary, const uint8_t *bytes,
                           size_t size, const char *folder, wasmtime_error_t **error)
{
    /* Code is larger than what it is made of: who has no room for that has none for the code. */
    if (!pay(m, size)) return "hakmem: the module does not fit into the tenant's limit";
    make_code(m, folder, binary->bytes ? binary->bytes : bytes, binary->bytes ? binary->size : size, error);
    if (*error) return NULL;
    if (binary->broken) return binary->broken;
    if (binary->memories > HAK_WASMTIME_MEMORIES)
        return "hakmem: the module has more linear memories than an instance may have";
    if (!pay(m, code_bytes(m->module) + (size_t)binary->kept))
        return "hakmem: the module's code does not fit into the tenant's limit";
    return NULL;
}

static hak_wasmtime_module *read_module(hak_wasm_tenant *tenant, wasm_engine_t *engine,
                                        const wasmtime_linker_t *linker, const uint8_t *bytes, size_t size,
                                        const char *folder, wasmtime_error_t **error)
{
    hak_wasm_host *host = hak_wasm_tenant_host(tenant);
    hkw_module binary;
    hkw_module_read(bytes, size, &binary);
    hak_wasmtime_module *m = hak_wasm_calloc(host, 1, sizeof *m);
    if (!m) {
        *error = wasmtime_error_new("hakmem: no memory for a module");
    } else {
        m->host = host;
        m->tenant = tenant;
        m->engine = engine;
        m->globals = binary.globals;
        m->refused = binary.refused;
        m->tables = binary.tables;
        m->table_count = binary.table_count;
        m->passive = binary.passive;
        m->own = binary.own;
        m->memories = binary.memories;
        binary.tables = NULL;
        const char *why = compile(m, &binary, bytes, size, folder, error);
        if (why) *error = wasmtime_error_new(why);
        if (!*error) *error = wasmtime_linker_instantiate_pre(linker, m->module, &m->linked);
        if (*error) {
            hak_wasmtime_module_delete(m);
            m = NULL;
        }
    }
    free(binary.bytes);
    free(binary.tables);
    return m;
}

static hak_wasmtime_module *new_module(hak_wasm_tenant *tenant, wasm_engine_t *engine,
                                       const wasmtime_linker_t *linker, const uint8_t *bytes, size_t size,
                                       const char *folder, wasmtime_error_t **error)
{
    char why[256];
    *error = NULL;
    if (!bytes || size == 0) {
        *error = wasmtime_error_new("hakmem: there is no module");
        return NULL;
    }
    if (hak_wasm_module_check(tenant, bytes, size, why, sizeof why) != 0) {
        *error = wasmtime_error_new(why);
        return NULL;
    }
    hak_wasm_scope before = hak_wasm_enter(tenant, HAK_WASM_LOAD);
    hak_wasmtime_module *m = read_module(tenant, engine, linker, bytes, size, folder, error);
    hak_wasm_leave(before);
    return m;
}

hak_wasmtime_module *hak_wasmtime_module_load(hak_wasm_tenant *tenant, wasm_engine_t *engine,
                                              const wasmtime_linker_t *linker, const uint8_t *bytes,
                                              size_t size, const char *folder, wasmtime_error_t **error)
{
    wasmtime_error_t *unasked = NULL;
    hak_wasmtime_module *m =
        new_module(tenant, engine, linker, bytes, size, folder, error ? error : &unasked);
    if (unasked) wasmtime_error_delete(unasked);
    return m;
}

hak_wasmtime_module *hak_wasmtime_module_new(hak_wasm_tenant *tenant, wasm_engine_t *engine,
                                             const wasmtime_linker_t *linker, const uint8_t *bytes,
                                             size_t size, wasmtime_error_t **error)
{
    return hak_wasmtime_module_load(tenant, engine, linker, bytes, size, NULL, error);
}

void hak_wasmtime_module_delete(hak_wasmtime_module *module)
{
    if (!module) return;
    if (module->linked) wasmtime_instance_pre_delete(module->linked);
    if (module->module) wasmtime_module_delete(module->module);
    free(module->tables);
    hak_wasm_uncharge(module->tenant, module->charged);
    hak_wasm_free(module->host, module);
}

const char *hak_wasmtime_module_refused(const hak_wasmtime_module *module)
{
    return module->refused;
}

/* Where the state is, by the exports that hkw_module_read added. Most instances are never asked. */
static void find_state(hak_wasmtime_instance *i)
{
    if (i->found) return;
    wasmtime_extern_t item;
    if (i->module->memories) {
        wasmtime_instance_export_get(i->context, &i->instance, HKW_EXPORT_MEMORY, strlen(HKW_EXPORT_MEMORY),
                                     &item);
        i->base = wasmtime_memory_data(i->context, &item.of.memory);
        i->memory = item.of.memory;
    }
    i->found = true;
    for (uint32_t n = 0; n < i->module->globals; n++) {
        char name[32];
        int length = snprintf(name, sizeof name, HKW_EXPORT_GLOBAL "%u", (unsigned)n);
        wasmtime_instance_export_get(i->context, &i->instance, name, (size_t)length, &item);
        i->globals[n] = item.of.global;
    }
}

/* As much as the tenant's limit on steps is. Without one, fuel is the embedder's. */
static wasmtime_error_t *refuel(hak_wasmtime_instance *i)
{
    const uint64_t steps = hak_wasm_step_limit(i->tenant);
    return steps ? wasmtime_context_set_fuel(i->context, steps) : NULL;
}

static hak_wasmtime_instance *new_instance(hak_wasm_tenant *tenant, const hak_wasmtime_module *module,
                                           void *data, hak_wasmtime_prepare_fn *prepare,
                                           wasmtime_error_t **error, wasm_trap_t **trap)
{
    *error = NULL;
    *trap = NULL;
    if (!module) {
        *error = wasmtime_error_new("hakmem: there is no module");
        return NULL;
    }
    if (hak_wasm_admit(tenant) != 0) {
        *error = wasmtime_error_new("hakmem: the tenant is at its limit of instances or of heap");
        return NULL;
    }
    hak_wasm_scope before = hak_wasm_enter(tenant, HAK_WASM_INSTANCE);
    hak_wasmtime_instance *i = hak_wasm_alloc(module->host, sizeof *i + module->globals * sizeof *i->globals);
    if (!i) {
        hak_wasm_dismiss(tenant);
        *error = wasmtime_error_new("hakmem: no memory for an instance");
    } else {
        i->tenant = tenant;
        i->module = module;
        i->base = NULL;
        i->found = false;
        i->charged = 0;
        i->rests = false;
        i->store = wasmtime_store_new(module->engine, data, NULL);
        i->context = wasmtime_store_context(i->store);
        if (hkw_tables_begin(i)) {
            if (prepare) prepare(i->store, data);
            *error = refuel(i);
            if (!*error)
                *error = wasmtime_instance_pre_instantiate(module->linked, i->context, &i->instance, trap);
        } else {
            *error = wasmtime_error_new(hkw_tables_refused(module));
        }
        if (*error || *trap) {
            hak_wasmtime_instance_close(i);
            i = NULL;
        }
    }
    hak_wasm_leave(before);
    return i;
}

hak_wasmtime_instance *hak_wasmtime_instance_new(hak_wasm_tenant *tenant, const hak_wasmtime_module *module,
                                                 void *data, hak_wasmtime_prepare_fn *prepare,
                                                 wasmtime_error_t **error, wasm_trap_t **trap)
{
    wasmtime_error_t *unasked = NULL;
    wasm_trap_t *trapped = NULL;
    hak_wasmtime_instance *i =
        new_instance(tenant, module, data, prepare, error ? error : &unasked, trap ? trap : &trapped);
    if (unasked) wasmtime_error_delete(unasked);
    if (trapped) wasm_trap_delete(trapped);
    return i;
}

void hak_wasmtime_instance_close(hak_wasmtime_instance *i)
{
    if (!i) return;
    hak_wasm_tenant *tenant = i->tenant;
    hak_wasm_scope before = hak_wasm_enter(tenant, HAK_WASM_INSTANCE);
    wasmtime_store_delete(i->store);
    hkw_tables_end(i);
    hak_wasm_free(i->module->host, i);
    hak_wasm_leave(before);
    hak_wasm_dismiss(tenant);
}

/* Before anybody uses the memory. */
static void wake(hak_wasmtime_instance *i)
{
    if (!i->rests) return;
    i->rests = false;
    hak_wasm_memory_wake(i->module->host, i->base);
}

wasmtime_context_t *hak_wasmtime_instance_context(hak_wasmtime_instance *instance)
{
    wake(instance);
    return instance->context;
}

wasmtime_instance_t *hak_wasmtime_instance_get(hak_wasmtime_instance *instance)
{
    wake(instance);
    return &instance->instance;
}

wasmtime_error_t *hak_wasmtime_call(hak_wasmtime_instance *instance, const wasmtime_func_t *function,
                                    const wasmtime_val_t *arguments, size_t argument_count,
                                    wasmtime_val_t *results, size_t result_count, wasm_trap_t **trap)
{
    wasm_trap_t *trapped = NULL;
    wake(instance);
    hak_wasm_scope before = hak_wasm_enter(instance->tenant, HAK_WASM_INSTANCE);
    wasmtime_error_t *error = refuel(instance);
    if (!error)
        error = wasmtime_func_call(instance->context, function, arguments, argument_count, results,
                                   result_count, &trapped);
    hak_wasm_leave(before);
    if (trap) {
        *trap = trapped;
    } else if (trapped) {
        wasm_trap_delete(trapped);
        if (!error) error = wasmtime_error_new("hakmem: the guest trapped");
    }
    return error;
}

hak_wasmtime_image *hak_wasmtime_image_take(hak_wasmtime_instance *i, const char **why)
{
    const hak_wasmtime_module *module = i->module;
    const char *unasked;
    if (!why) why = &unasked;
    *why = module->refused;
    if (*why) return NULL;
    *why = "there is no memory for an image, or it is over a limit of the tenant";
    hak_wasm_scope before = hak_wasm_enter(hak_wasm_host_tenant(module->host), HAK_WASM_OTHER);
    hak_wasmtime_image *image =
        hak_wasm_alloc(module->host, sizeof *image + module->globals * sizeof *image->globals);
    hak_wasm_leave(before);
    if (!image) return NULL;
    find_state(i);
    image->module = module;
    before = hak_wasm_enter(i->tenant, HAK_WASM_LINEAR);
    image->memory = i->base ? hak_wasm_image_take(module->host, i->base) : NULL;
    hak_wasm_leave(before);
    if (i->base && !image->memory) {
        hak_wasm_free(module->host, image);
        return NULL;
    }
    for (uint32_t n = 0; n < module->globals; n++) {
        wasmtime_global_get(i->context, &i->globals[n], &image->globals[n]);
    }
    *why = NULL;
    return image;
}

void hak_wasmtime_image_drop(hak_wasmtime_image *image)
{
    if (!image) return;
    hak_wasm_image_drop(image->memory);
    hak_wasm_free(image->module->host, image);
}

/* Sizes change by wasmtime's own growth only: it keeps the length of a memory beside the compiled code. */
static int fit(hak_wasmtime_instance *i, size_t wanted)
{
    size_t size = hak_wasm_memory_size(i->module->host, i->base);
    if (size == wanted) return 0;
    if (size > wanted) return -1;
    uint64_t before;
    wasmtime_error_t *error =
        wasmtime_memory_grow(i->context, &i->memory, (wanted - size) / HKW_PAGE, &before);
    if (error) wasmtime_error_delete(error);
    return error ? -1 : 0;
}

/* back: hak_wasm_memory_reset or _rest. */
static int reset(hak_wasmtime_instance *i, hak_wasmtime_image *image,
                 int (*back)(hak_wasm_host *, void *, hak_wasm_image *))
{
    const hak_wasmtime_module *module = i->module;
    if (!image || image->module != module) return -1;
    wake(i);
    find_state(i);
    if (i->base && fit(i, hak_wasm_image_size(image->memory)) != 0) return -1;
    for (uint32_t n = 0; n < module->globals; n++) {
        wasmtime_error_t *error = wasmtime_global_set(i->context, &i->globals[n], &image->globals[n]);
        if (error) {
            wasmtime_error_delete(error);
            return -1;
        }
    }
    return i->base ? back(module->host, i->base, image->memory) : 0;
}

int hak_wasmtime_reset(hak_wasmtime_instance *i, hak_wasmtime_image *image)
{
    return reset(i, image, hak_wasm_memory_reset);
}

int hak_wasmtime_rest(hak_wasmtime_instance *i, hak_wasmtime_image *image)
{
    if (reset(i, image, hak_wasm_memory_rest) != 0) return -1;
    i->rests = i->base;
    return 0;
}

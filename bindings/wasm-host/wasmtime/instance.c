/* Modules and instances. */
#include "types.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

/* Compiles the module itself, of which the copy failed: with its exports the copy can be over a limit of
 * wasmtime's. Only a valid module is worth a second try; *error is of the one that is tried last. */
static void make_without_copy(hak_wasmtime_module *m, const char *folder, const uint8_t *bytes, size_t size,
                              wasmtime_error_t **error)
{
    wasmtime_error_delete(*error);
    *error = wasmtime_module_validate(m->engine, bytes, size);
    if (*error) return;
    m->refused = m->alone_refused = "a copy of it that shows its state is over a limit of wasmtime's";
    m->globals = m->functions = 0;
    m->tables_change = false;
    make_code(m, folder, bytes, size, error);
}

static const char *compile(hak_wasmtime_module *m, const hkw_module *binary, const uint8_t *bytes,
                           size_t size, const char *folder, wasmtime_error_t **error)
{
    /* Code is larger than what it is made of: who has no room for that has none for the code. */
    if (!pay(m, size)) return "hakmem: the module does not fit into the tenant's limit";
    make_code(m, folder, binary->bytes ? binary->bytes : bytes, binary->bytes ? binary->size : size, error);
    if (*error && binary->bytes) make_without_copy(m, folder, bytes, size, error);
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
    hkw_module_read(bytes, size, linker == NULL, &binary);
    hak_wasmtime_module *m = hak_wasm_calloc(host, 1, sizeof *m);
    if (!m) {
        *error = wasmtime_error_new("hakmem: no memory for a module");
    } else {
        m->host = host;
        m->tenant = tenant;
        m->engine = engine;
        m->globals = binary.globals;
        m->alone_refused = binary.refused ? binary.refused : binary.borrowed;
        m->refused = binary.refused;
        m->tables = binary.tables;
        m->table_count = binary.table_count;
        m->tables_change = binary.tables_change;
        m->tables_grow = binary.tables_grow;
        m->changes_table = binary.changes_table;
        m->exports_table = binary.exports_table;
        m->functions = binary.functions;
        m->passive = binary.passive;
        m->own = binary.own;
        m->memories = binary.memories;
        binary.tables = NULL;
        const char *why = compile(m, &binary, bytes, size, folder, error);
        if (why) *error = wasmtime_error_new(why);
        if (!*error && linker) *error = wasmtime_linker_instantiate_pre(linker, m->module, &m->linked);
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
    return module->alone_refused;
}

/* With room for what the first image or reset finds. */
static hak_wasmtime_instance *alloc_instance(const hak_wasmtime_module *m)
{
    const size_t tables = m->tables_change ? m->table_count : 0, functions = m->functions;
    hak_wasmtime_instance *i =
        hak_wasm_alloc(m->host, sizeof *i + m->globals * sizeof *i->globals + tables * sizeof *i->tables +
                                    functions * sizeof *i->functions);
    if (!i) return NULL;
    i->tables = (wasmtime_table_t *)(void *)(i->globals + m->globals);
    i->functions = (wasmtime_func_t *)(void *)(i->tables + tables);
    return i;
}

/* As much as the tenant's limit on steps is. Without one, fuel is the embedder's. */
static wasmtime_error_t *refuel(hak_wasmtime_instance *i)
{
    const uint64_t steps = hak_wasm_step_limit(i->tenant);
    return steps ? wasmtime_context_set_fuel(i->context, steps) : NULL;
}

/* Why there can be no such program; NULL = there can. */
static const char *program_error(const hak_wasmtime_part *parts, size_t count,
                                 const wasmtime_linker_t *linker)
{
    if (count == 0) return "hakmem: there is no module";
    for (size_t n = 0; n < count; n++) {
        if (!parts[n].module) return "hakmem: there is no module";
        if (!linker && !parts[n].module->linked)
            return "hakmem: the module was loaded without a linker: it is for a program";
        if (linker && n + 1 < count && !parts[n].name) return "hakmem: a part of a program has no name";
        if (parts[n].module->engine != parts[0].module->engine)
            return "hakmem: the modules of a program are of different engines";
    }
    return NULL;
}

static void free_parts(hak_wasmtime_instance *last)
{
    while (last) {
        hak_wasmtime_instance *i = last;
        last = i->before;
        hak_wasm_free(i->module->host, i);
    }
}

/* The last of the parts; NULL = no memory. */
static hak_wasmtime_instance *alloc_parts(hak_wasm_tenant *tenant, const hak_wasmtime_part *parts,
                                          size_t count)
{
    hak_wasmtime_instance *last = NULL;
    for (size_t n = 0; n < count; n++) {
        hak_wasmtime_instance *i = alloc_instance(parts[n].module);
        if (!i) {
            free_parts(last);
            return NULL;
        }
        i->tenant = tenant;
        i->module = parts[n].module;
        i->before = last;
        i->base = NULL;
        i->found = false;
        i->charged = 0;
        i->rests = false;
        last = i;
    }
    return last;
}

static bool is_added(const wasm_name_t *export)
{
    const size_t prefix = sizeof HKW_EXPORT_PREFIX - 1;
    return export->size >= prefix && memcmp(export->data, HKW_EXPORT_PREFIX, prefix) == 0;
}

/* Shows the parts behind this one what its module exports, and not what the copy adds: a part's own memory is
 * hidden from other parts. The exports are asked for by name, since wasmtime counts to the n-th from the first. */
static wasmtime_error_t *define_part(wasmtime_linker_t *linker, const hak_wasmtime_instance *i,
                                     const char *name)
{
    wasm_exporttype_vec_t exports;
    wasmtime_error_t *error = NULL;
    wasmtime_module_exports(i->module->module, &exports);
    for (size_t n = 0; n < exports.size && !error; n++) {
        const wasm_name_t *export = wasm_exporttype_name(exports.data[n]);
        wasmtime_extern_t item;
        if (is_added(export) ||
            !wasmtime_instance_export_get(i->context, &i->instance, export->data, export->size, &item))
            continue;
        error =
            wasmtime_linker_define(linker, i->context, name, strlen(name), export->data, export->size, &item);
        wasmtime_extern_delete(&item);
    }
    wasm_exporttype_vec_delete(&exports);
    return error;
}

/* From the first to the last. linker: the program's own, to which each part is added; NULL = there is one part,
 * which has its own. */
static wasmtime_error_t *instantiate(hak_wasmtime_instance *i, const hak_wasmtime_part *parts, size_t count,
                                     wasmtime_linker_t *linker, wasm_trap_t **trap)
{
    wasmtime_error_t *error = i->before ? instantiate(i->before, parts, count - 1, linker, trap) : NULL;
    if (error || *trap) return error;
    error = refuel(i);
    if (error) return error;
    if (!linker) return wasmtime_instance_pre_instantiate(i->module->linked, i->context, &i->instance, trap);
    const char *name = parts[count - 1].name;
    error = wasmtime_linker_instantiate(linker, i->context, i->module->module, &i->instance, trap);
    if (error || *trap || !name) return error;
    return define_part(linker, i, name);
}

static hak_wasmtime_instance *new_program(hak_wasm_tenant *tenant, const hak_wasmtime_part *parts,
                                          size_t count, const wasmtime_linker_t *linker, void *data,
                                          hak_wasmtime_prepare_fn *prepare, wasmtime_error_t **error,
                                          wasm_trap_t **trap)
{
    *error = NULL;
    *trap = NULL;
    const char *why = program_error(parts, count, linker);
    if (!why && hak_wasm_admit(tenant) != 0)
        why = "hakmem: the tenant is at its limit of instances or of heap";
    if (why) {
        *error = wasmtime_error_new(why);
        return NULL;
    }
    hak_wasm_scope before = hak_wasm_enter(tenant, HAK_WASM_INSTANCE);
    hak_wasmtime_instance *i = alloc_parts(tenant, parts, count);
    if (!i) {
        hak_wasm_dismiss(tenant);
        *error = wasmtime_error_new("hakmem: no memory for an instance");
    } else {
        wasmtime_linker_t *all = linker ? wasmtime_linker_clone(linker) : NULL;
        i->store = wasmtime_store_new(i->module->engine, data, NULL);
        for (hak_wasmtime_instance *part = i; part; part = part->before)
            part->context = wasmtime_store_context(i->store);
        if (hkw_tables_begin(i)) {
            if (prepare) prepare(i->store, data);
            *error = instantiate(i, parts, count, all, trap);
        } else {
            *error = wasmtime_error_new(hkw_tables_refused(i));
        }
        if (all) wasmtime_linker_delete(all);
        if (*error || *trap) {
            hak_wasmtime_instance_close(i);
            i = NULL;
        }
    }
    hak_wasm_leave(before);
    return i;
}

hak_wasmtime_instance *hak_wasmtime_program_new(hak_wasm_tenant *tenant, const hak_wasmtime_part *parts,
                                                size_t count, const wasmtime_linker_t *linker, void *data,
                                                hak_wasmtime_prepare_fn *prepare, wasmtime_error_t **error,
                                                wasm_trap_t **trap)
{
    wasmtime_error_t *unasked = NULL;
    wasm_trap_t *trapped = NULL;
    if (!error) error = &unasked;
    if (!linker) {
        *error = wasmtime_error_new("hakmem: a program needs a linker, maybe an empty one");
        if (trap) *trap = NULL;
    }
    hak_wasmtime_instance *i =
        linker ? new_program(tenant, parts, count, linker, data, prepare, error, trap ? trap : &trapped)
               : NULL;
    if (unasked) wasmtime_error_delete(unasked);
    if (trapped) wasm_trap_delete(trapped);
    return i;
}

hak_wasmtime_instance *hak_wasmtime_instance_new(hak_wasm_tenant *tenant, const hak_wasmtime_module *module,
                                                 void *data, hak_wasmtime_prepare_fn *prepare,
                                                 wasmtime_error_t **error, wasm_trap_t **trap)
{
    wasmtime_error_t *unasked = NULL;
    wasm_trap_t *trapped = NULL;
    const hak_wasmtime_part part = {NULL, module};
    hak_wasmtime_instance *i =
        new_program(tenant, &part, 1, NULL, data, prepare, error ? error : &unasked, trap ? trap : &trapped);
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
    free_parts(i);
    hak_wasm_leave(before);
    hak_wasm_dismiss(tenant);
}

/* Before anybody uses the memory. */
void hkw_wake(hak_wasmtime_instance *i)
{
    for (; i; i = i->before) {
        if (!i->rests) continue;
        i->rests = false;
        hak_wasm_memory_wake(i->module->host, i->base);
    }
}

wasmtime_context_t *hak_wasmtime_instance_context(hak_wasmtime_instance *instance)
{
    hkw_wake(instance);
    return instance->context;
}

wasmtime_instance_t *hak_wasmtime_instance_get(hak_wasmtime_instance *instance)
{
    hkw_wake(instance);
    return &instance->instance;
}

wasmtime_instance_t *hak_wasmtime_program_part(hak_wasmtime_instance *program, size_t n)
{
    size_t count = 0;
    for (const hak_wasmtime_instance *i = program; i; i = i->before)
        count++;
    if (n >= count) return NULL;
    hkw_wake(program);
    for (; n + 1 < count; n++)
        program = program->before;
    return &program->instance;
}

wasmtime_error_t *hak_wasmtime_call(hak_wasmtime_instance *instance, const wasmtime_func_t *function,
                                    const wasmtime_val_t *arguments, size_t argument_count,
                                    wasmtime_val_t *results, size_t result_count, wasm_trap_t **trap)
{
    wasm_trap_t *trapped = NULL;
    hkw_wake(instance);
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

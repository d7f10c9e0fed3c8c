/* Instances, and programs of them. */
#include "types.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

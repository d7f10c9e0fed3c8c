/* Images of instances, and the way back to them. */
#include "types.h"

#include <stdio.h>
#include <string.h>

struct hak_wasmtime_image {
    const hak_wasmtime_module *module;
    hak_wasmtime_image *before; /* of the part before, as in the instance */
    hak_wasm_image *memory;
    hkw_elements *elements; /* NULL = tables do not change */
    wasmtime_val_t globals[];
};

static wasmtime_extern_t numbered(hak_wasmtime_instance *i, const char *kind, uint32_t n)
{
    char name[32];
    wasmtime_extern_t item;
    int length = snprintf(name, sizeof name, "%s%u", kind, (unsigned)n);
    wasmtime_instance_export_get(i->context, &i->instance, name, (size_t)length, &item);
    return item;
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
    for (uint32_t n = 0; n < i->module->globals; n++)
        i->globals[n] = numbered(i, HKW_EXPORT_GLOBAL, n).of.global;
    for (uint32_t n = 0; i->module->tables_change && n < i->module->table_count; n++)
        i->tables[n] = numbered(i, HKW_EXPORT_TABLE, n).of.table;
    for (uint32_t n = 0; n < i->module->functions; n++)
        i->functions[n] = numbered(i, HKW_EXPORT_FUNCTION, n).of.func;
}

static hak_wasmtime_image *take_part(hak_wasmtime_instance *whole, hak_wasmtime_instance *i, const char **why)
{
    const hak_wasmtime_module *module = i->module;
    hak_wasm_scope before = hak_wasm_enter(hak_wasm_host_tenant(module->host), HAK_WASM_OTHER);
    hak_wasmtime_image *image =
        hak_wasm_alloc(module->host, sizeof *image + module->globals * sizeof *image->globals);
    hak_wasm_leave(before);
    if (!image) return NULL;
    image->module = module;
    image->before = NULL;
    image->memory = NULL;
    image->elements = module->tables_change ? hkw_elements_take(whole, i, why) : NULL;
    bool fine = image->elements || !module->tables_change;
    if (fine && i->base) {
        before = hak_wasm_enter(i->tenant, HAK_WASM_LINEAR);
        image->memory = hak_wasm_image_take(module->host, i->base);
        hak_wasm_leave(before);
        fine = image->memory;
    }
    if (!fine) {
        hak_wasmtime_image_drop(image);
        return NULL;
    }
    for (uint32_t n = 0; n < module->globals; n++)
        wasmtime_global_get(i->context, &i->globals[n], &image->globals[n]);
    return image;
}

/* Why the instance, or a part of the program, has no images; NULL = it has. */
static const char *refused(const hak_wasmtime_instance *i)
{
    bool changes = false, unseen = false;
    if (!i->before) return i->module->alone_refused;
    for (; i; i = i->before) {
        if (i->module->refused) return i->module->refused;
        changes |= i->module->changes_table;
        unseen |= i->module->exports_table && !i->module->tables_change;
    }
    return changes && unseen ? "a part changes tables, and one that exports a table was loaded with a linker"
                             : NULL;
}

hak_wasmtime_image *hak_wasmtime_image_take(hak_wasmtime_instance *instance, const char **why)
{
    const char *unasked;
    hak_wasmtime_image *first = NULL, **to = &first;
    if (!why) why = &unasked;
    *why = refused(instance);
    if (*why) return NULL;
    *why = "there is no memory for an image, or it is over a limit of the tenant";
    for (hak_wasmtime_instance *i = instance; i; i = i->before)
        find_state(i);
    for (hak_wasmtime_instance *i = instance; i; i = i->before) {
        *to = take_part(instance, i, why);
        if (!*to) {
            hak_wasmtime_image_drop(first);
            return NULL;
        }
        to = &(*to)->before;
    }
    *why = NULL;
    return first;
}

void hak_wasmtime_image_drop(hak_wasmtime_image *image)
{
    while (image) {
        hak_wasmtime_image *part = image;
        hak_wasm_host *host = part->module->host;
        image = part->before;
        hkw_elements_drop(host, part->elements); /* before that which keeps the tenant */
        hak_wasm_image_drop(part->memory);
        hak_wasm_free(host, part);
    }
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

typedef int back_fn(hak_wasm_host *, void *, hak_wasm_image *);

static int reset_part(hak_wasmtime_instance *whole, hak_wasmtime_instance *i, hak_wasmtime_image *image,
                      back_fn *back)
{
    const hak_wasmtime_module *module = i->module;
    if (i->base && fit(i, hak_wasm_image_size(image->memory)) != 0) return -1;
    if (image->elements && !hkw_elements_restore(whole, i, image->elements)) return -1;
    for (uint32_t n = 0; n < module->globals; n++) {
        wasmtime_error_t *error = wasmtime_global_set(i->context, &i->globals[n], &image->globals[n]);
        if (error) {
            wasmtime_error_delete(error);
            return -1;
        }
    }
    return i->base ? back(module->host, i->base, image->memory) : 0;
}

static bool is_of(const hak_wasmtime_image *image, const hak_wasmtime_instance *i)
{
    for (; image && i && image->module == i->module; image = image->before)
        i = i->before;
    return !image && !i;
}

/* back: hak_wasm_memory_reset or _rest. */
static int reset(hak_wasmtime_instance *whole, hak_wasmtime_image *image, back_fn *back)
{
    if (!image || !is_of(image, whole)) return -1;
    hkw_wake(whole);
    for (hak_wasmtime_instance *i = whole; i; i = i->before)
        find_state(i);
    for (hak_wasmtime_instance *i = whole; i; i = i->before, image = image->before)
        if (reset_part(whole, i, image, back) != 0) return -1;
    return 0;
}

int hak_wasmtime_reset(hak_wasmtime_instance *instance, hak_wasmtime_image *image)
{
    return reset(instance, image, hak_wasm_memory_reset);
}

int hak_wasmtime_rest(hak_wasmtime_instance *instance, hak_wasmtime_image *image)
{
    if (reset(instance, image, hak_wasm_memory_rest) != 0) return -1;
    for (hak_wasmtime_instance *i = instance; i; i = i->before)
        i->rests = i->base;
    return 0;
}

/* Elements of tables, to bring them back. A store's references to functions mean nothing in another store, so
 * an image has the numbers that functions have among those that the module's copy exports. */
#include "types.h"

#include <stdlib.h>

typedef struct known {
    const void *function; /* wasmtime's, one for each function and instance */
    uint32_t number;      /* from 1 */
} known;

static int by_address(const void *left, const void *right)
{
    uintptr_t a = (uintptr_t)((const known *)left)->function, b = (uintptr_t)((const known *)right)->function;
    return a < b ? -1 : a > b;
}

static bool is_null(const wasmtime_val_t *value)
{
    return value->of.funcref.store_id == 0;
}

static uint32_t count_functions(const hak_wasmtime_instance *whole)
{
    uint32_t count = 0;
    for (; whole; whole = whole->before)
        count += whole->module->functions;
    return count;
}

static known *sorted_functions(const hak_wasmtime_instance *whole, uint32_t count)
{
    known *all = malloc((count + 1) * sizeof *all);
    uint32_t number = 0;
    for (const hak_wasmtime_instance *i = whole; all && i; i = i->before)
        for (uint32_t n = 0; n < i->module->functions; n++, number++)
            all[number] = (known){i->functions[n].__private, number + 1};
    if (all && count) qsort(all, count, sizeof *all, by_address);
    return all;
}

static wasmtime_func_t numbered(const hak_wasmtime_instance *i, uint32_t number)
{
    while (number > i->module->functions) {
        number -= i->module->functions;
        i = i->before;
    }
    return i->functions[number - 1];
}

/* 0 = not one that the module refers to. */
static uint32_t number_of(const known *all, uint32_t count, const wasmtime_val_t *value)
{
    const known key = {value->of.funcref.__private, 0};
    const known *found = count ? bsearch(&key, all, count, sizeof *all, by_address) : NULL;
    return found ? found->number : 0;
}

static bool note(hak_wasmtime_instance *i, const known *all, uint32_t count, uint32_t *to)
{
    for (uint32_t t = 0; t < i->module->table_count; t++) {
        const uint32_t size = *to++ = (uint32_t)wasmtime_table_size(i->context, &i->tables[t]);
        for (uint32_t n = 0; n < size; n++, to++) {
            wasmtime_val_t value;
            if (!wasmtime_table_get(i->context, &i->tables[t], n, &value)) return false;
            *to = is_null(&value) ? 0 : number_of(all, count, &value);
            if (!is_null(&value) && *to == 0) return false;
        }
    }
    return true;
}

hkw_elements *hkw_elements_take(hak_wasmtime_instance *whole, hak_wasmtime_instance *i, const char **why)
{
    hak_wasm_host *host = i->module->host;
    uint64_t count = i->module->table_count;
    for (uint32_t t = 0; t < i->module->table_count; t++) {
        count += wasmtime_table_size(i->context, &i->tables[t]);
        if (count > UINT32_MAX) return NULL;
    }
    const size_t bytes = sizeof(hkw_elements) + (size_t)count * sizeof(uint32_t);
    /* The image of the memory keeps its tenant, also where that is closed before; else the host pays. */
    hak_wasm_tenant *payer = i->base ? i->tenant : hak_wasm_host_tenant(host);
    if (hak_wasm_charge(payer, bytes) != 0) return NULL;
    hak_wasm_scope before = hak_wasm_enter(hak_wasm_host_tenant(host), HAK_WASM_OTHER);
    hkw_elements *elements = hak_wasm_alloc(host, bytes);
    hak_wasm_leave(before);
    if (!elements) {
        hak_wasm_uncharge(payer, bytes);
        return NULL;
    }
    elements->tenant = payer;
    elements->charged = bytes;
    const uint32_t functions = count_functions(whole);
    known *all = sorted_functions(whole, functions);
    const bool known_all = all && note(i, all, functions, elements->numbers);
    if (all && !known_all) *why = "a table has a function that is none of the module's";
    free(all);
    if (known_all) return elements;
    hkw_elements_drop(host, elements);
    return NULL;
}

void hkw_elements_drop(hak_wasm_host *host, hkw_elements *elements)
{
    if (!elements) return;
    hak_wasm_uncharge(elements->tenant, elements->charged);
    hak_wasm_free(host, elements);
}

static bool succeeds(wasmtime_error_t *error)
{
    if (error) wasmtime_error_delete(error);
    return !error;
}

static bool fit(hak_wasmtime_instance *i, const wasmtime_table_t *table, uint32_t wanted)
{
    const uint64_t size = wasmtime_table_size(i->context, table);
    const wasmtime_val_t none = {.kind = WASMTIME_FUNCREF};
    uint64_t before;
    if (size >= wanted) return size == wanted;
    return succeeds(wasmtime_table_grow(i->context, table, wanted - size, &none, &before));
}

bool hkw_elements_restore(hak_wasmtime_instance *whole, hak_wasmtime_instance *i,
                          const hkw_elements *elements)
{
    const uint32_t *from = elements->numbers;
    for (uint32_t t = 0; t < i->module->table_count; t++) {
        const uint32_t size = *from++;
        if (!fit(i, &i->tables[t], size)) return false;
        for (uint32_t n = 0; n < size; n++, from++) {
            wasmtime_val_t now, wanted = {.kind = WASMTIME_FUNCREF};
            if (*from) wanted.of.funcref = numbered(whole, *from);
            if (!wasmtime_table_get(i->context, &i->tables[t], n, &now)) return false;
            if (is_null(&now) ? is_null(&wanted) : now.of.funcref.__private == wanted.of.funcref.__private)
                continue;
            if (!succeeds(wasmtime_table_set(i->context, &i->tables[t], n, &wanted))) return false;
        }
    }
    return true;
}

#include "tenant.h"

static bool add(hkw_account *a, size_t n, size_t *used)
{
    size_t now = atomic_load_explicit(&a->used, memory_order_relaxed);
    size_t limit = atomic_load_explicit(&a->limit, memory_order_relaxed);
    do {
        if (limit && (now >= limit || n > limit - now) && n) {
            atomic_fetch_add_explicit(&a->refused, 1, memory_order_relaxed);
            return false;
        }
    } while (!atomic_compare_exchange_weak_explicit(&a->used, &now, now + n, memory_order_relaxed,
                                                    memory_order_relaxed));
    *used = now + n;
    return true;
}

static void raise_peak(hkw_account *a, size_t used)
{
    size_t peak = atomic_load_explicit(&a->peak, memory_order_relaxed);
    while (peak < used && !atomic_compare_exchange_weak_explicit(&a->peak, &peak, used, memory_order_relaxed,
                                                                 memory_order_relaxed)) {
    }
}

/* What a parent refuses is in no peak. */
bool hkw_charge(hak_wasm_tenant *tenant, hkw_counted what, size_t n)
{
    if (!tenant) return true;
    hkw_account *a = &tenant->account[what];
    size_t used;
    if (!add(a, n, &used)) return false;
    if (!hkw_charge(tenant->parent, what, n)) {
        atomic_fetch_sub_explicit(&a->used, n, memory_order_relaxed);
        return false;
    }
    raise_peak(a, used);
    return true;
}

void hkw_uncharge(hak_wasm_tenant *tenant, hkw_counted what, size_t n)
{
    for (; tenant; tenant = tenant->parent)
        atomic_fetch_sub_explicit(&tenant->account[what].used, n, memory_order_relaxed);
}

int hak_wasm_charge(hak_wasm_tenant *tenant, size_t bytes)
{
    if (!hkw_charge(tenant, HKW_BYTES, bytes)) return -1;
    atomic_fetch_add_explicit(&tenant->own_charged, bytes, memory_order_relaxed);
    return 0;
}

void hak_wasm_uncharge(hak_wasm_tenant *tenant, size_t bytes)
{
    atomic_fetch_sub_explicit(&tenant->own_charged, bytes, memory_order_relaxed);
    hkw_uncharge(tenant, HKW_BYTES, bytes);
}

size_t hak_wasm_linear_limit(const hak_wasm_tenant *tenant)
{
    size_t least = 0;
    for (; tenant; tenant = tenant->parent) {
        size_t limit = atomic_load_explicit(&tenant->account[HKW_BYTES].limit, memory_order_relaxed);
        if (limit && (!least || limit < least)) least = limit;
    }
    return least;
}

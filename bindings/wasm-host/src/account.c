#include "tenant.h"

static bool add(hk_wasm_account *a, size_t n, size_t *used)
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

static void raise_peak(hk_wasm_account *a, size_t used)
{
    size_t peak = atomic_load_explicit(&a->peak, memory_order_relaxed);
    while (peak < used && !atomic_compare_exchange_weak_explicit(&a->peak, &peak, used, memory_order_relaxed,
                                                                 memory_order_relaxed)) {
    }
}

/* What a parent refuses is in no peak. */
bool hk_wasm_charge(hak_wasm_tenant *tenant, hk_wasm_counted what, size_t n)
{
    if (!tenant) return true;
    hk_wasm_account *a = &tenant->account[what];
    size_t used;
    if (!add(a, n, &used)) return false;
    if (!hk_wasm_charge(tenant->parent, what, n)) {
        atomic_fetch_sub_explicit(&a->used, n, memory_order_relaxed);
        return false;
    }
    raise_peak(a, used);
    return true;
}

void hk_wasm_uncharge(hak_wasm_tenant *tenant, hk_wasm_counted what, size_t n)
{
    for (; tenant; tenant = tenant->parent)
        atomic_fetch_sub_explicit(&tenant->account[what].used, n, memory_order_relaxed);
}

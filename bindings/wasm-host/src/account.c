#include "tenant.h"

static bool charge_one(hk_wasm_account *a, size_t n)
{
    size_t used = atomic_load_explicit(&a->used, memory_order_relaxed);
    size_t limit = atomic_load_explicit(&a->limit, memory_order_relaxed);
    do {
        if (limit && (used >= limit || n > limit - used) && n) {
            atomic_fetch_add_explicit(&a->refused, 1, memory_order_relaxed);
            return false;
        }
    } while (!atomic_compare_exchange_weak_explicit(&a->used, &used, used + n, memory_order_relaxed,
                                                    memory_order_relaxed));
    size_t peak = atomic_load_explicit(&a->peak, memory_order_relaxed);
    while (peak < used + n && !atomic_compare_exchange_weak_explicit(
                                  &a->peak, &peak, used + n, memory_order_relaxed, memory_order_relaxed)) {
    }
    return true;
}

bool hk_wasm_charge(hak_wasm_tenant *tenant, hk_wasm_counted what, size_t n)
{
    for (hak_wasm_tenant *at = tenant; at; at = at->parent) {
        if (charge_one(&at->account[what], n)) continue;
        for (hak_wasm_tenant *undo = tenant; undo != at; undo = undo->parent)
            atomic_fetch_sub_explicit(&undo->account[what].used, n, memory_order_relaxed);
        return false;
    }
    return true;
}

void hk_wasm_uncharge(hak_wasm_tenant *tenant, hk_wasm_counted what, size_t n)
{
    for (; tenant; tenant = tenant->parent)
        atomic_fetch_sub_explicit(&tenant->account[what].used, n, memory_order_relaxed);
}

/* Counters with limits: of a tenant and all of its parents. */
#include "tenant.h"

#include <sched.h>
#include <time.h>

static size_t load(const _Atomic size_t *number)
{
    return atomic_load_explicit(number, memory_order_relaxed);
}

static bool fits(size_t used, size_t limit, size_t n)
{
    if (n > SIZE_MAX - used) return false;
    return n == 0 || !limit || (used < limit && n <= limit - used);
}

/* The nearest tenant whose limit does not allow n more than what all have; NULL = none. */
static hak_wasm_tenant *refusing(hak_wasm_tenant *tenant, hkw_counted what, size_t n)
{
    for (; tenant; tenant = tenant->parent)
        if (!fits(load(&tenant->account[what].used), load(&tenant->account[what].limit), n)) break;
    return tenant;
}

static bool take_one(hkw_account *a, size_t n)
{
    size_t taken = atomic_load(&a->taken);
    do {
        if (!fits(taken, load(&a->limit), n)) return false;
    } while (!atomic_compare_exchange_weak(&a->taken, &taken, taken + n));
    return true;
}

static void give_back(hak_wasm_tenant *tenant, const hak_wasm_tenant *end, hkw_counted what, size_t n)
{
    for (; tenant != end; tenant = tenant->parent)
        atomic_fetch_sub(&tenant->account[what].taken, n);
}

/* From the leaf up, so that a tenant that refuses takes nothing from those beside and above it. */
static bool take_all(hak_wasm_tenant *tenant, hkw_counted what, size_t n)
{
    for (hak_wasm_tenant *at = tenant; at; at = at->parent) {
        if (take_one(&at->account[what], n)) continue;
        give_back(tenant, at, what, n);
        return false;
    }
    return true;
}

/* Sleeps after some rounds: a thread of a lower priority may be the one that is waited for. */
static void wait_a_moment(unsigned round)
{
    const struct timespec moment = {0, 50000};
    if (round < 64) sched_yield();
    else nanosleep(&moment, NULL);
}

/* What others hold without having it yet is no reason to refuse: they may give it back, as those do that a
 * parent refuses. They are waited for. */
bool hkw_reserve(hak_wasm_tenant *tenant, hkw_counted what, size_t n)
{
    for (unsigned round = 0;; round++) {
        hak_wasm_tenant *at = refusing(tenant, what, n);
        if (at) {
            atomic_fetch_add_explicit(&at->account[what].refused, 1, memory_order_relaxed);
            return false;
        }
        if (take_all(tenant, what, n)) return true;
        wait_a_moment(round);
    }
}

static void raise_peak(hkw_account *a, size_t used)
{
    size_t peak = load(&a->peak);
    while (peak < used && !atomic_compare_exchange_weak_explicit(&a->peak, &peak, used, memory_order_relaxed,
                                                                 memory_order_relaxed)) {
    }
}

/* Parents first: no tenant ever shows more than a parent of it. */
void hkw_keep(hak_wasm_tenant *tenant, hkw_counted what, size_t n)
{
    if (tenant->parent) hkw_keep(tenant->parent, what, n);
    hkw_account *a = &tenant->account[what];
    raise_peak(a, atomic_fetch_add(&a->used, n) + n);
}

void hkw_cancel(hak_wasm_tenant *tenant, hkw_counted what, size_t n)
{
    give_back(tenant, NULL, what, n);
}

void hkw_uncharge(hak_wasm_tenant *tenant, hkw_counted what, size_t n)
{
    for (hak_wasm_tenant *at = tenant; at; at = at->parent)
        atomic_fetch_sub(&at->account[what].used, n);
    give_back(tenant, NULL, what, n);
}

int hak_wasm_charge(hak_wasm_tenant *tenant, size_t bytes)
{
    if (!hkw_reserve(tenant, HKW_BYTES, bytes)) return -1;
    hkw_keep(tenant, HKW_BYTES, bytes);
    atomic_fetch_add_explicit(&tenant->own_charged, bytes, memory_order_relaxed);
    return 0;
}

size_t hkw_lower(_Atomic size_t *number, size_t n)
{
    size_t now = atomic_load_explicit(number, memory_order_relaxed), less;
    do {
        less = n < now ? n : now;
    } while (!atomic_compare_exchange_weak_explicit(number, &now, now - less, memory_order_relaxed,
                                                    memory_order_relaxed));
    return less;
}

/* What was never charged is not given back: the accounts of parents would have less than their children. */
void hak_wasm_uncharge(hak_wasm_tenant *tenant, size_t bytes)
{
    const size_t charged = hkw_lower(&tenant->own_charged, bytes);
    if (charged) hkw_uncharge(tenant, HKW_BYTES, charged);
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

#include "heap/domains.h"

#include <stdatomic.h>
#include <stdlib.h>

/* For threads without memory for counts of their own, which may then disturb each other's. */
static hkp_counts common;
static hkp_counts *_Atomic all = &common;
_Thread_local hkp_counts *hkp_counted;

static hkp_counts *left_over(void)
{
    for (hkp_counts *c = all; c; c = c->next)
        if (c != &common && !__atomic_exchange_n(&c->taken, true, __ATOMIC_ACQUIRE)) return c;
    return NULL;
}

void hkp_counts_take(void)
{
    if (hkp_counted && hkp_counted != &common) return;
    hkp_counts *c = left_over();
    if (!c && (c = calloc(1, sizeof *c))) {
        c->next = all;
        c->taken = true;
        while (!atomic_compare_exchange_weak(&all, &c->next, c)) {
        }
    }
    hkp_counted = c ? c : &common;
    hkp_counted->aside = HKP_ASIDE;
}

void hkp_counts_leave(void)
{
    hkp_counts *c = hkp_counted;
    hkp_counted = NULL;
    if (c && c != &common) __atomic_store_n(&c->taken, false, __ATOMIC_RELEASE);
}

void hkp_counts_in_child(void)
{
    for (hkp_counts *c = all; c; c = c->next)
        if (c != hkp_counted) c->taken = false;
}

hkp_amount hkp_counts_sum(hkp_domain domain)
{
    hkp_amount sum = {0, 0};
    for (const hkp_counts *c = all; c; c = c->next) {
        sum.bytes += __atomic_load_n(&c->of[domain].others.bytes, __ATOMIC_RELAXED);
        sum.blocks += __atomic_load_n(&c->of[domain].others.blocks, __ATOMIC_RELAXED);
        for (uint32_t kind = 0; kind < HAK_INLINE_BINS; kind++) {
            size_t blocks = (size_t)(int32_t)__atomic_load_n(&c->of[domain].kinds[kind], __ATOMIC_RELAXED);
            sum.bytes += blocks * hak_inline_size(kind);
            sum.blocks += blocks;
        }
    }
    if ((ptrdiff_t)sum.bytes < 0 || (ptrdiff_t)sum.blocks < 0) sum = (hkp_amount){0, 0};
    return sum;
}

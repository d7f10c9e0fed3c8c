#include "domains.h"

#include <stdatomic.h>
#include <stdlib.h>

/* For threads without memory for counts of their own, which may then disturb each other's. */
static hk_py_counts common;
static hk_py_counts *_Atomic all = &common;
_Thread_local hk_py_counts *hk_py_counted;

static hk_py_counts *left_over(void)
{
    for (hk_py_counts *c = all; c; c = c->next)
        if (c != &common && !__atomic_exchange_n(&c->taken, true, __ATOMIC_ACQUIRE)) return c;
    return NULL;
}

void hk_py_counts_take(void)
{
    if (hk_py_counted && hk_py_counted != &common) return;
    hk_py_counts *c = left_over();
    if (!c && (c = calloc(1, sizeof *c)) != NULL) {
        c->next = all;
        c->taken = true;
        while (!atomic_compare_exchange_weak(&all, &c->next, c)) {
        }
    }
    hk_py_counted = c ? c : &common;
}

void hk_py_counts_leave(void)
{
    hk_py_counts *c = hk_py_counted;
    hk_py_counted = NULL;
    if (c && c != &common) __atomic_store_n(&c->taken, false, __ATOMIC_RELEASE);
}

void hk_py_counts_in_child(void)
{
    for (hk_py_counts *c = all; c; c = c->next)
        if (c != hk_py_counted) c->taken = false;
}

hk_py_amount hk_py_counts_sum(hk_py_domain domain)
{
    hk_py_amount sum = {0, 0};
    for (const hk_py_counts *c = all; c; c = c->next) {
        sum.bytes += __atomic_load_n(&c->of[domain].others.bytes, __ATOMIC_RELAXED);
        sum.blocks += __atomic_load_n(&c->of[domain].others.blocks, __ATOMIC_RELAXED);
        for (uint32_t kind = 0; kind < HAK_INLINE_BINS; kind++) {
            size_t blocks = (size_t)(int32_t)__atomic_load_n(&c->of[domain].kinds[kind], __ATOMIC_RELAXED);
            sum.bytes += blocks * hak_inline_size(kind);
            sum.blocks += blocks;
        }
    }
    if ((ptrdiff_t)sum.bytes < 0 || (ptrdiff_t)sum.blocks < 0) sum = (hk_py_amount){0, 0};
    return sum;
}

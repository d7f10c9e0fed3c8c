#define _DEFAULT_SOURCE
#include "heap/domains.h"

#include <stdatomic.h>
#include <sys/mman.h>

/* For threads that ended, and those without memory for counts of their own: they may disturb each other's. */
static hkp_counts common;
static hkp_counts *_Atomic all = &common;
_Thread_local hkp_counts *hkp_counted;

static hkp_counts *left_over(void)
{
    for (hkp_counts *c = all; c; c = c->next)
        if (c != &common && !__atomic_exchange_n(&c->taken, true, __ATOMIC_ACQUIRE)) return c;
    return NULL;
}

/* Not by malloc, which may be what asks. All but one are for threads to come. */
static hkp_counts *more(void)
{
    enum { TOGETHER = 4 };
    const size_t size = TOGETHER * sizeof(hkp_counts);
    hkp_counts *c = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (c == MAP_FAILED) return NULL;
    for (int i = 0; i < TOGETHER - 1; i++)
        c[i].next = &c[i + 1];
    c->taken = true;
    hkp_counts *last = &c[TOGETHER - 1];
    last->next = all;
    while (!atomic_compare_exchange_weak(&all, &last->next, c)) {
    }
    return c;
}

bool hkp_counts_take(void)
{
    if (hkp_counted) return hkp_counted != &common;
    hkp_counts *c = left_over();
    if (!c) c = more();
    hkp_counted = c ? c : &common;
    hkp_counted->aside = HKP_ASIDE;
    return c != NULL;
}

void hkp_counts_leave(void)
{
    hkp_counts *c = hkp_counted;
    hkp_counted = &common;
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

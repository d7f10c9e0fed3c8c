/* Live blocks of the domains while blocks have no labels: each thread counts those that it makes and frees,
 * so that one thread's counts may be below zero. OBJ, by far the most, is not counted: it is the rest. */
#ifndef HKP_DOMAINS_H
#define HKP_DOMAINS_H

#include "base/core.h"

#include <hakmem/inline.h>

typedef struct hkp_amount {
    size_t bytes, blocks;
} hkp_amount;

typedef struct hkp_counts {
    struct {
        uint32_t kinds[HAK_INLINE_BINS]; /* blocks of the thread's own heap, by their kind */
        hkp_amount others;
    } of[HKP_DOMAINS];
    struct hkp_counts *next;
    bool taken;    /* by a thread */
    uint8_t aside; /* small blocks that the thread may have of what a limit sets aside: see heap.h */
} hkp_counts;

/* Those of this thread, once it has a heap. */
extern _Thread_local hkp_counts *hkp_counted HKP_NEAR;

/* What a thread has of what is set aside, see hkp_allocate_aside. */
enum { HKP_ASIDE = 32 };

/* false = this thread ended, or there is no memory: it shares what it has with others. */
bool hkp_counts_take(void);
/* The thread ends: its counts go on with another one. It may still free and allocate. */
void hkp_counts_leave(void);
/* In the child after a fork: all other threads ended. */
void hkp_counts_in_child(void);
/* Over all threads. Exact when no other thread is inside a call; never below zero. */
HKP_API hkp_amount hkp_counts_sum(hkp_domain domain);

/* One more block of the heap, or one less (-1). */
HKP_INLINE void hkp_count_kind(hkp_domain domain, uint32_t kind, int by)
{
    hkp_counted->of[domain].kinds[kind] += (uint32_t)by;
}

/* The same for any block. */
HKP_INLINE void hkp_count(hak_ctx *heap, hkp_domain domain, const void *p, int by)
{
    uint32_t kind = hak_inline_kind(heap, p);
    if (HKP_LIKELY(kind < HAK_INLINE_BINS)) {
        hkp_count_kind(domain, kind, by);
        return;
    }
    hkp_amount *others = &hkp_counted->of[domain].others;
    others->bytes += (size_t)by * hak_usable_size(heap, p);
    others->blocks += (size_t)by;
}

#endif

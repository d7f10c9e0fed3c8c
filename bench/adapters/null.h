/* No allocator: addresses from a ring, one a lane. What remains is the cost of the harness. With
 * BENCH_LABELLED it also chooses a label, the harness's share of the labelled runs. */
#ifndef BENCH_ADAPTER_NULL_H
#define BENCH_ADAPTER_NULL_H

#include "label.h"

#include <stdint.h>

#define BA_HAS_CTX 1
#define BA_HAS_BUFFER 0

enum { RINGS = 4, RING_SMALL = 1 << 18, RING_BIG = 1 << 24, RING_SMALL_MAX = 1 << 15 };
extern char null_ring_small[RINGS][RING_SMALL], null_ring_big[RING_BIG];
/* The next address; rings are aligned to their size, and no block reaches the end of one. */
extern _Thread_local uintptr_t null_at_small;

static inline const char *ba_version(void)
{
    return "ring of addresses";
}
static inline void ba_thread_begin(size_t lane)
{
    null_at_small = (uintptr_t)null_ring_small[lane % RINGS];
}
static inline void ba_thread_end(void)
{
}
static inline void ba_init(void)
{
    ba_thread_begin(0);
}
static inline void *ba_alloc(size_t n)
{
#ifdef BENCH_LABELLED
    __asm__ volatile("" ::"r"(label_index(n)));
#endif
    size_t room = (n + 15) & ~(size_t)15;
    if (room <= RING_SMALL_MAX) {
        uintptr_t at = null_at_small;
        if ((at & (RING_SMALL - 1)) + room >= RING_SMALL) at &= ~(uintptr_t)(RING_SMALL - 1);
        null_at_small = at + room;
        return (void *)at;
    }
    return null_ring_big;
}
static inline void ba_free(void *p, size_t n)
{
    __asm__ volatile("" ::"r"(p));
    (void)n;
}
static inline void *ba_realloc(void *p, size_t old, size_t n)
{
    (void)old;
    (void)p;
    return ba_alloc(n);
}
static inline void ba_trim(void)
{
}
static inline void ba_tick(void)
{
}

typedef struct null_ctx ba_ctx;
static inline ba_ctx *ba_ctx_new(void)
{
    return (ba_ctx *)ba_alloc(64);
}
static inline void *ba_ctx_alloc(ba_ctx *c, size_t n)
{
    (void)c;
    return ba_alloc(n);
}
static inline void ba_ctx_destroy(ba_ctx *c)
{
    __asm__ volatile("" ::"r"(c));
}

#endif

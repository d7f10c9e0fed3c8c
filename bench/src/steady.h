/* A steady mix: 50,000 slots; sizes spread evenly over the powers of two from 16 bytes to 16 KiB, one block
 * in 4096 of up to 1 MiB. One operation is one allocation or one free. */
#ifndef BENCH_STEADY_H
#define BENCH_STEADY_H

#include "harness.h"
#include BENCH_ADAPTER

enum { STEADY_SLOTS = 50000, STEADY_BATCH = 20000 };

typedef struct steady_slot {
    void *p;
    size_t n;
} steady_slot;

static inline size_t steady_size(uint64_t x)
{
    if (x >> 52 == 0) return rng_range(x, 64 * KIB, MIB);
    size_t base = (size_t)16 << ((x >> 40) % 10);
    return base + rng_range(x, 0, base - 1);
}

static inline void steady_batch(steady_slot *slots, bench_rng *r)
{
    for (int i = 0; i < STEADY_BATCH; i++) {
        uint64_t x = rng_next(r);
        steady_slot *s = &slots[rng_index(x, STEADY_SLOTS)];
        if (s->p) {
            ba_free(s->p, s->n);
            s->p = NULL;
        } else {
            s->n = steady_size(rng_next(r));
            s->p = ba_alloc(s->n);
            touch_pages(s->p, s->n);
        }
    }
    ba_tick();
}

#endif

/* Random slots: one is freed if it is full, else filled. One operation is one allocation or one free. */
#ifndef BENCH_MIX_H
#define BENCH_MIX_H

#include "harness.h"
#include BENCH_ADAPTER

/* How many operations lie between two turns lent to the allocator for its housekeeping. */
enum { MIX_TICK_EVERY = 1 << 14 };

typedef struct mix {
    bench_slot *slots;
    size_t count, lo, hi;
    bench_rng rng;
} mix;

static void mix_run(mix *m, size_t ops)
{
    bench_rng r = m->rng;
    while (ops) {
        size_t batch = ops < MIX_TICK_EVERY ? ops : MIX_TICK_EVERY;
        ops -= batch;
        for (; batch; batch--) {
            uint64_t x = rng_next(&r);
            bench_slot *s = &m->slots[rng_index(x, m->count)];
            if (*s) {
                ba_free(slot_ptr(*s), slot_size(*s));
                *s = 0;
            } else {
                size_t n = rng_range(x, m->lo, m->hi);
                void *p = ba_alloc(n);
                touch(p, n);
                *s = slot_make(p, n);
            }
        }
        ba_tick();
    }
    m->rng = r;
}

#endif

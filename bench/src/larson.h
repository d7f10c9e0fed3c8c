/* larson: a server's thread owns an array of chunks and replaces random ones. One operation is one allocation
 * or one free. The state of a thread is in one struct and the loop takes nothing else. */
#ifndef BENCH_LARSON_H
#define BENCH_LARSON_H

#include "harness.h"
#include BENCH_ADAPTER

typedef struct larson {
    bench_slot *chunks;
    size_t count;
    bench_rng rng;
} larson;

enum { LARSON_LO = 8, LARSON_HI = 1024, LARSON_TICK_EVERY = 1 << 13 };

static bench_slot larson_chunk(uint64_t x)
{
    size_t n = rng_range(x, LARSON_LO, LARSON_HI);
    void *p = ba_alloc(n);
    touch(p, n);
    return slot_make(p, n);
}

static void larson_fill(larson *l)
{
    for (size_t i = 0; i < l->count; i++)
        l->chunks[i] = larson_chunk(rng_next(&l->rng));
}

static void larson_round(larson *l, size_t pairs)
{
    bench_rng r = l->rng;
    for (size_t i = 0; i < pairs; i++) {
        uint64_t x = rng_next(&r);
        bench_slot *s = &l->chunks[rng_index(x, l->count)];
        ba_free(slot_ptr(*s), slot_size(*s));
        *s = larson_chunk(x);
        if (i % LARSON_TICK_EVERY == 0) ba_tick();
    }
    l->rng = r;
}

#endif

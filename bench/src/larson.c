/* larson: a server's thread owns an array of chunks and replaces random ones; after a round it ends and
 * hands the array on. One operation is one allocation or one free. The state of a thread is in one struct
 * and the loop takes nothing else. */
#include "harness.h"
#include BENCH_ADAPTER

typedef struct larson {
    bench_slot *chunks;
    size_t count;
    bench_rng rng;
} larson;

enum { LO = 8, HI = 1024, TICK_EVERY = 1 << 13 };

static bench_slot larson_chunk(uint64_t x) {
    size_t n = rng_range(x, LO, HI);
    void *p = ba_alloc(n);
    touch(p, n);
    return slot_make(p, n);
}

static void larson_fill(larson *l) {
    for (size_t i = 0; i < l->count; i++) l->chunks[i] = larson_chunk(rng_next(&l->rng));
}

static void larson_round(larson *l, size_t pairs) {
    bench_rng r = l->rng;
    for (size_t i = 0; i < pairs; i++) {
        uint64_t x = rng_next(&r);
        bench_slot *s = &l->chunks[rng_index(x, l->count)];
        ba_free(slot_ptr(*s), slot_size(*s));
        *s = larson_chunk(x);
        if (i % TICK_EVERY == 0) ba_tick();
    }
    l->rng = r;
}

static void larson_row(const bench_case *c, const bench_settings *s) {
    larson l = {bench_table(c->a * sizeof(bench_slot)), c->a, 11};
    size_t before = resident_bytes();
    ba_init();
    larson_fill(&l);
    larson_round(&l, 200000);
    size_t pairs = scaled(s, 10000000);
    bench_timer t;
    timer_start(&t);
    larson_round(&l, pairs);
    timer_stop(&t, pairs * 2);
    put("rss_mib", ((double)resident_bytes() - (double)before) / (double)MIB);
}

static const bench_case cases[] = {
    {"chunks1024", 1024, 0, false}, {"chunks10000", 10000, 0, false}, {NULL, 0, 0, false}};

const bench_row rows_larson[] = {{"larson", cases, larson_row}, {NULL, NULL, NULL}};

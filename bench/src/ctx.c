/* ctx: create a context, allocate some blocks of 16..512 bytes in it, destroy it. With more than one
 * context alive, a random one is destroyed and made anew. Where the allocator has no contexts the blocks
 * are freed one by one. One operation is one context. */
#include "harness.h"
#include BENCH_ADAPTER

enum { TABLE = 4096, RSS_CHECK_EVERY = 128 };
/* An allocator that needs more for one case fails it, before the machine is out of memory. */
#define RSS_MAX (4 * KIB * MIB)

static unsigned short sizes[TABLE];

#if BA_HAS_CTX
typedef ba_ctx *one;
static one one_new(void **blocks, size_t count, size_t at)
{
    (void)blocks;
    ba_ctx *c = ba_ctx_new();
    if (!c) bench_fail("no more contexts");
    for (size_t i = 0; i < count; i++)
        touch(ba_ctx_alloc(c, sizes[(at + i) % TABLE]), i);
    return c;
}
static void one_destroy(one c, void **blocks, size_t count, size_t at)
{
    (void)blocks;
    (void)count;
    (void)at;
    ba_ctx_destroy(c);
}
#else
typedef void **one;
static one one_new(void **blocks, size_t count, size_t at)
{
    for (size_t i = 0; i < count; i++) {
        blocks[i] = ba_alloc(sizes[(at + i) % TABLE]);
        touch(blocks[i], i);
    }
    return blocks;
}
static void one_destroy(one c, void **blocks, size_t count, size_t at)
{
    (void)blocks;
    for (size_t i = 0; i < count; i++)
        ba_free(c[i], sizes[(at + i) % TABLE]);
}
#endif

static void ctx(const bench_case *c, const bench_settings *s)
{
    size_t live = c->a, count = c->b;
    one *all = bench_table(live * sizeof *all);
    size_t *at = bench_table(live * sizeof *at);
    void **blocks = bench_table(live * count * sizeof *blocks);
    bench_rng r = 17;
    for (size_t i = 0; i < TABLE; i++)
        sizes[i] = (unsigned short)rng_range(rng_next(&r), 16, 512);
    ba_init();
    double before = (double)resident_bytes();
    put("has_ctx", BA_HAS_CTX);
    for (size_t i = 0; i < live; i++) {
        at[i] = i;
        all[i] = one_new(blocks + i * count, count, i);
        if (i % RSS_CHECK_EVERY == 0 && roughly_resident_bytes() > RSS_MAX)
            bench_fail("more than 4 GiB resident");
    }
    put("kib_per_ctx", ((double)resident_bytes() - before) / (double)KIB / (double)live);
    size_t rounds = scaled(s, 2000000 / (count + 20)), warm = rounds / 20 + live / 4;
    bench_timer t;
    for (size_t i = 0; i < warm + rounds; i++) {
        if (i == warm) timer_start(&t);
        size_t k = rng_index(rng_next(&r), live);
        one_destroy(all[k], blocks + k * count, count, at[k]);
        at[k] = i % TABLE;
        all[k] = one_new(blocks + k * count, count, at[k]);
        if (i % 256 == 0) ba_tick();
    }
    timer_stop(&t, rounds);
}

/* ctx_defined: the same with 12 labels, which are defined one by one. */
static void ctx_defined(const bench_case *c, const bench_settings *s)
{
#ifdef BA_CTX_DEFINE
    bench_rng r = 17;
    for (size_t i = 0; i < TABLE; i++)
        sizes[i] = (unsigned short)rng_range(rng_next(&r), 16, 512);
    ba_init();
    size_t count = c->b, rounds = scaled(s, 2000000 / (count + 20)), warm = rounds / 20;
    bench_timer t;
    for (size_t i = 0; i < warm + rounds; i++) {
        if (i == warm) timer_start(&t);
        ba_ctx *made = ba_ctx_new();
        if (!made) bench_fail("no more contexts");
        ba_ctx_define(made);
        for (size_t k = 0; k < count; k++)
            touch(ba_ctx_alloc_defined(made, sizes[(i + k) % TABLE]), k);
        ba_ctx_destroy(made);
        if (i % 256 == 0) ba_tick();
    }
    timer_stop(&t, rounds);
#else
    (void)c;
    (void)s;
    bench_fail("this allocator has no labels");
#endif
}

/* young: a context of some blocks of 16..515 bytes lives for 3000 replacements, and the next one begins. Where
 * the adapter has no contexts whose blocks are freed one by one, the blocks are of the process's heap, which is
 * warm. One operation is one replacement. */
#ifdef BA_CTX_FREE
#define IN_CONTEXTS 1
#define young_new() ba_ctx_new()
#define young_alloc(c, n) ba_ctx_alloc(c, n)
#define young_free(c, p) ba_ctx_free(c, p)
#define young_end(c) ba_ctx_destroy(c)
#else
#define IN_CONTEXTS 0
#define young_new() NULL
#define young_alloc(c, n) ba_alloc(n)
#define young_free(c, p) ba_free(p, 0)
#define young_end(c) (void)(c)
#endif

static void young(const bench_case *c, const bench_settings *s)
{
    enum { LIFE = 3000 };
    size_t live = c->a, rounds = scaled(s, 2000), warm = rounds / 10;
    void **blocks = bench_table(live * sizeof *blocks);
    bench_rng r = 23;
    bench_timer t;
    ba_init();
    put("has_ctx", IN_CONTEXTS);
    for (size_t round = 0; round < warm + rounds; round++) {
        if (round == warm) timer_start(&t);
        void *heap = young_new();
        for (size_t i = 0; i < live; i++)
            touch(blocks[i] = young_alloc(heap, rng_range(rng_next(&r), 16, 515)), i);
        for (size_t i = 0; i < LIFE; i++) {
            uint64_t x = rng_next(&r);
            void **at = &blocks[rng_index(x, live)];
            young_free(heap, *at);
            touch(*at = young_alloc(heap, rng_range(x, 16, 515)), i);
        }
        if (!IN_CONTEXTS)
            for (size_t i = 0; i < live; i++)
                young_free(heap, blocks[i]);
        young_end(heap);
    }
    timer_stop(&t, rounds * LIFE);
}

static const bench_case young_cases[] = {
    {"live20", 20, 0, false},
    {"live200", 200, 0, false},
    {"live2000", 2000, 0, false},
    {NULL, 0, 0, false},
};

static const bench_case cases[] = {
    {"blocks20", 1, 20, false},      {"blocks1000", 1, 1000, false},
    {"live10000", 10000, 20, false}, {"live10", 10, 20, true},
    {"live100", 100, 20, true},      {"live1000", 1000, 20, true},
    {"live50000", 50000, 20, true},  {NULL, 0, 0, false},
};

static const bench_case defined_cases[] = {{"blocks20", 1, 20, false}, {NULL, 0, 0, false}};

const bench_row rows_ctx[] = {{"ctx", cases, ctx},
                              {"ctx_defined", defined_cases, ctx_defined},
                              {"young", young_cases, young},
                              {NULL, NULL, NULL}};

/* Rows of several threads on one heap (c->b of them). One operation is one allocation or one free, but for
 * churn, where it is the life of a thread. Queues hand over thousands of blocks at a time, so that what is
 * measured is the allocator. */
#include "lanes.h"
#include "larson.h"
#include "mix.h"

static void put_memory(size_t before, size_t peak_before)
{
    put("rss_mib", ((double)resident_bytes() - (double)before) / (double)MIB);
    put("peak_mib", ((double)peak_resident_bytes() - (double)peak_before) / (double)MIB);
}

/* ---- larson: threads die, and hand their array to the next one ---- */

enum { LIVES = 10, LIVES_UNTOLD = 100, LANES = 4 };

typedef struct larsons {
    larson of[LANES];
    size_t pairs; /* of one life */
    bool tells;   /* the allocator is told that a thread ends, if there is a call for that */
} larsons;

static void larson_life(void *shared, size_t lane)
{
    larsons *l = shared;
    larson_round(&l->of[lane], l->pairs);
}

static void larson_lane(void *shared, size_t lane)
{
    const larsons *l = shared;
    for (int i = 0; i < (l->tells ? LIVES : LIVES_UNTOLD); i++)
        (l->tells ? lane_thread : lane_thread_untold)(larson_life, shared, lane);
}

static void larson_of(const bench_case *c, const bench_settings *s, bool tells)
{
    static larsons l;
    size_t lives = tells ? LIVES : LIVES_UNTOLD;
    l.tells = tells;
    for (size_t i = 0; i < c->b; i++)
        l.of[i] = (larson){bench_table(c->a * sizeof(bench_slot)), c->a, 11 + i};
    size_t before = resident_bytes(), peak = peak_resident_bytes();
    ba_init();
    for (size_t i = 0; i < c->b; i++)
        larson_fill(&l.of[i]);
    l.pairs = scaled(s, 8000000) / lives / c->b + 1;
    lanes_run(c->b, larson_life, larson_lane, &l, l.pairs * lives * c->b * 2);
    put_memory(before, peak);
}

static void larson_threads(const bench_case *c, const bench_settings *s)
{
    larson_of(c, s, true);
}

static void larson_untold(const bench_case *c, const bench_settings *s)
{
    larson_of(c, s, false);
}

/* ---- mid: blocks of 8 to 32 KiB, each thread for itself ---- */

typedef struct mixes {
    mix of[LANES];
    size_t ops;
} mixes;

static void mid_warm(void *shared, size_t lane)
{
    mixes *m = shared;
    mix_run(&m->of[lane], 100000);
}

static void mid_lane(void *shared, size_t lane)
{
    mixes *m = shared;
    mix_run(&m->of[lane], m->ops);
}

static void mid_threads(const bench_case *c, const bench_settings *s)
{
    static mixes m;
    for (size_t i = 0; i < c->b; i++)
        m.of[i] = (mix){bench_table(c->a * sizeof(bench_slot)), c->a, 8 * KIB, 32 * KIB, 1 + i};
    size_t before = resident_bytes(), peak = peak_resident_bytes();
    ba_init();
    m.ops = scaled(s, 10000000) / c->b;
    lanes_run(c->b, mid_warm, mid_lane, &m, m.ops * c->b);
    put_memory(before, peak);
}

/* ---- xmalloc: half of the threads allocate batches, the others free them ---- */

enum { XMALLOC_BATCHES = 8 };

typedef struct line {
    pipe *full[LANES], *empty;
    size_t threads, rounds; /* batches of a thread */
    bench_rng rng[LANES];
} line;

/* Batches of the harness in `empty`, that many for each pair. */
static void line_fill(line *l, size_t batches)
{
    for (size_t i = 0; i < LANES; i++) {
        l->full[i] = pipe_new();
        l->rng[i] = 5 + i;
    }
    l->empty = pipe_new();
    bench_batch *all = bench_table(batches * sizeof *all);
    for (size_t i = 0; i < batches; i++)
        pipe_put(l->empty, &all[i]);
}

static bench_slot line_block(bench_rng *r)
{
    static const unsigned short sizes[] = {8,   12,  16,  24,  32,  48,   64,   96,  128,
                                           192, 256, 384, 512, 768, 1024, 1536, 2048};
    size_t n = sizes[rng_index(rng_next(r), sizeof sizes / sizeof *sizes)];
    void *p = ba_alloc(n);
    touch(p, n);
    return slot_make(p, n);
}

static void xmalloc_lane(void *shared, size_t lane)
{
    line *l = shared;
    bool allocates = lane % 2 == 0;
    for (size_t i = l->rounds; i; i--) {
        bench_batch *b = pipe_get(allocates ? l->empty : l->full[0]);
        if (allocates)
            for (b->used = 0; b->used < BATCH_MOST; b->used++)
                b->blocks[b->used] = line_block(&l->rng[lane]);
        else
            for (size_t k = 0; k < b->used; k++)
                ba_free(slot_ptr(b->blocks[k]), slot_size(b->blocks[k]));
        pipe_put(allocates ? l->full[0] : l->empty, b);
        ba_tick();
    }
}

static void xmalloc(const bench_case *c, const bench_settings *s)
{
    static line l;
    line_fill(&l, XMALLOC_BATCHES * c->b / 2);
    size_t before = resident_bytes(), peak = peak_resident_bytes();
    ba_init();
    size_t warm = 20;
    l.rounds = (scaled(s, 12000000) / BATCH_MOST + warm) / (c->b / 2);
    lanes_run(c->b, NULL, xmalloc_lane, &l, l.rounds * (c->b / 2) * BATCH_MOST * 2);
    put_memory(before, peak);
}

/* ---- chain: every thread replaces half of what comes, the last one frees all ---- */

enum { CHAIN_BATCH = 1024, CHAIN_BATCHES = 16 };

static void chain_lane(void *shared, size_t lane)
{
    line *l = shared;
    bool first = lane == 0, last = lane + 1 == l->threads;
    for (size_t i = l->rounds; i; i--) {
        bench_batch *b = pipe_get(first ? l->empty : l->full[lane - 1]);
        for (size_t k = 0; !first && k < CHAIN_BATCH; k += last ? 1 : 2)
            ba_free(slot_ptr(b->blocks[k]), slot_size(b->blocks[k]));
        for (size_t k = 0; !last && k < CHAIN_BATCH; k += first ? 1 : 2)
            b->blocks[k] = line_block(&l->rng[lane]);
        pipe_put(last ? l->empty : l->full[lane], b);
        ba_tick();
    }
}

static void chain(const bench_case *c, const bench_settings *s)
{
    static line l;
    line_fill(&l, CHAIN_BATCHES);
    size_t before = resident_bytes(), peak = peak_resident_bytes();
    ba_init();
    l.threads = c->b;
    l.rounds = scaled(s, 4000000) / CHAIN_BATCH + 1;
    lanes_run(c->b, NULL, chain_lane, &l, l.rounds * CHAIN_BATCH * c->b);
    put_memory(before, peak);
}

/* ---- churn: threads that live for 200 blocks, of which they leave 50 to the next one ---- */

enum { CHURN_BLOCKS = 200, CHURN_LEFT = 50 };

typedef struct churners {
    bench_slot left[LANES][CHURN_LEFT];
    bench_rng rng[LANES];
    size_t lives;
} churners;

static void churn_life(void *shared, size_t lane)
{
    churners *u = shared;
    bench_slot mine[CHURN_BLOCKS], *left = u->left[lane];
    for (size_t i = 0; i < CHURN_BLOCKS; i++) {
        if (i < CHURN_LEFT && left[i]) ba_free(slot_ptr(left[i]), slot_size(left[i]));
        mine[i] = line_block(&u->rng[lane]);
    }
    for (size_t i = CHURN_LEFT; i < CHURN_BLOCKS; i++)
        ba_free(slot_ptr(mine[i]), slot_size(mine[i]));
    for (size_t i = 0; i < CHURN_LEFT; i++)
        left[i] = mine[i];
}

static void churn_lane(void *shared, size_t lane)
{
    churners *u = shared;
    for (size_t i = u->lives; i; i--)
        lane_thread(churn_life, shared, lane);
}

static void churn(const bench_case *c, const bench_settings *s)
{
    static churners u;
    size_t before = resident_bytes(), peak = peak_resident_bytes();
    ba_init();
    for (size_t i = 0; i < c->b; i++)
        u.rng[i] = 3 + i;
    u.lives = scaled(s, c->a) / c->b + 1;
    lanes_run(c->b, churn_life, churn_lane, &u, u.lives * c->b);
    put_memory(before, peak);
}

static const bench_case larson_cases[] = {{"1x1024", 1024, 1, false},   {"2x1024", 1024, 2, false},
                                          {"4x1024", 1024, 4, false},   {"1x10000", 10000, 1, false},
                                          {"2x10000", 10000, 2, false}, {"4x10000", 10000, 4, false},
                                          {NULL, 0, 0, false}};
static const bench_case mid_cases[] = {
    {"1x256", 256, 1, false}, {"2x256", 256, 2, false}, {"4x256", 256, 4, false}, {NULL, 0, 0, false}};
static const bench_case xmalloc_cases[] = {{"1to1", 0, 2, false}, {"2to2", 0, 4, false}, {NULL, 0, 0, false}};
static const bench_case chain_cases[] = {{"4", 0, 4, false}, {NULL, 0, 0, false}};
static const bench_case churn_cases[] = {{"10000", 10000, 2, false}, {NULL, 0, 0, false}};

const bench_row rows_threads[] = {
    {"larson_threads", larson_cases, larson_threads},
    {"larson_untold", larson_cases, larson_untold},
    {"mid_threads", mid_cases, mid_threads},
    {"xmalloc", xmalloc_cases, xmalloc},
    {"chain", chain_cases, chain},
    {"churn", churn_cases, churn},
    {NULL, NULL, NULL},
};

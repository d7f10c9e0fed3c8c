/* cold: what the other rows do before they are warm; nothing is measured that went before. Buffers that grow,
 * in rounds; blocks that are replaced a hundred times; a heap that grows. One operation is one step of
 * growth, one block. */
#include "harness.h"
#include BENCH_ADAPTER

enum { BUFFERS = 8, REPLACED = 100, HELD = 4 };

static size_t next_size(size_t n, size_t step)
{
    return step ? n + step : n + n / 2;
}

/* All buffers grow in turn to their last size, and are freed. */
static size_t grow_buffers(size_t first, size_t last, size_t step)
{
    char *p[BUFFERS];
    size_t steps = 0;
    for (size_t b = 0; b < BUFFERS; b++)
        p[b] = ba_alloc(first);
    for (size_t old = first, n; (n = next_size(old, step)) <= last; old = n) {
        for (size_t b = 0; b < BUFFERS; b++) {
            p[b] = ba_realloc(p[b], old, n);
            for (size_t at = old; at < n; at += 4096)
                p[b][at] = 1;
            *(volatile char *)(p[b] + n - 1) = 1;
        }
        steps += BUFFERS;
        first = n;
    }
    for (size_t b = 0; b < BUFFERS; b++)
        ba_free(p[b], first);
    ba_tick();
    return steps;
}

static void growth(const bench_case *c, const bench_settings *s)
{
    size_t rounds = scaled(s, c->b), steps = 0;
    bench_timer t;
    timer_start(&t);
    ba_init();
    for (size_t i = 0; i < rounds; i++)
        steps += grow_buffers(c->a ? 64 : 16, c->a ? 16 * KIB : MIB, c->a);
    timer_stop(&t, steps);
}

/* a = 0: the sizes of `mixed`. */
static void replace(const bench_case *c, const bench_settings *s)
{
    static const size_t sizes[] = {64 * KIB, 512 * KIB, 2 * MIB};
    (void)s;
    void *held[HELD] = {NULL};
    size_t n[HELD] = {0}, most = c->a ? 1 : HELD;
    bench_rng rng = 3;
    bench_timer t;
    timer_start(&t);
    ba_init();
    for (size_t i = 0; i < REPLACED; i++) {
        uint64_t x = rng_next(&rng);
        size_t at = rng_index(x, most);
        if (held[at]) ba_free(held[at], n[at]);
        n[at] = c->a ? c->a : sizes[rng_range(x, 0, 2)];
        held[at] = ba_alloc(n[at]);
        touch_pages(held[at], n[at]);
        if (i % 64 == 0) ba_tick();
    }
    timer_stop(&t, REPLACED);
}

/* Blocks of 16 to 515 bytes until c->a bytes are live; all are written. */
static void heap(const bench_case *c, const bench_settings *s)
{
    bench_rng rng = 7;
    size_t live = 0, blocks = 0, most = scaled(s, c->a);
    bench_timer t;
    timer_start(&t);
    ba_init();
    for (; live < most; blocks++) {
        size_t n = rng_range(rng_next(&rng), 16, 515);
        char *p = ba_alloc(n);
        for (size_t at = 0; at < n; at += 64)
            p[at] = 1;
        live += n;
        if (blocks % 16384 == 0) ba_tick();
    }
    timer_stop(&t, blocks);
    put("rss_mib", (double)resident_bytes() / MIB);
}

static const bench_case growth_cases[] = {
    {"x1.5", 0, 30, false}, {"plus64", 64, 1, false}, {NULL, 0, 0, false}};
static const bench_case replace_cases[] = {
    {"2M", 2 * MIB, 0, false}, {"512K", 512 * KIB, 0, false}, {"held4", 0, 0, false}, {NULL, 0, 0, false}};
static const bench_case heap_cases[] = {{"390M", 390 * MIB, 0, false}, {NULL, 0, 0, false}};

const bench_row rows_cold[] = {
    {"cold_realloc", growth_cases, growth},
    {"cold_big", replace_cases, replace},
    {"cold_heap", heap_cases, heap},
    {NULL, NULL, NULL},
};

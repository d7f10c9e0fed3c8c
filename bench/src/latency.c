/* latency: each allocation and each free of a random mix (10,000 slots, 16..1024 bytes) timed by itself
 * with the time stamp counter, net of the cheapest empty measurement. The counter of a virtual machine may
 * advance in steps: step_ns says by how much at least. */
#include "harness.h"
#include BENCH_ADAPTER

#include <x86intrin.h>

enum { SLOTS = 10000, FINE = 1 << 16 };

/* Cycles below FINE are counted one by one; the few longer operations are kept as they are. */
static uint32_t counts[FINE];
enum { LONG_MAX_COUNT = 1 << 16 };
static uint64_t longs[LONG_MAX_COUNT];
static size_t long_count;

static inline uint64_t stamp(void)
{
    unsigned aux;
    uint64_t t = __rdtscp(&aux);
    _mm_lfence();
    return t;
}

static uint64_t empty_cost(void)
{
    uint64_t least = UINT64_MAX;
    for (int i = 0; i < 100000; i++) {
        uint64_t a = stamp(), b = stamp();
        if (b - a < least) least = b - a;
    }
    return least;
}

static void note(uint64_t cycles)
{
    if (cycles < FINE) counts[cycles]++;
    else if (long_count < LONG_MAX_COUNT) longs[long_count++] = cycles;
}

static void run(bench_slot *slots, size_t ops, uint64_t empty, bool timed, bench_rng *r)
{
    for (size_t i = 0; i < ops; i++) {
        uint64_t x = rng_next(r), from, to;
        bench_slot *s = &slots[rng_index(x, SLOTS)];
        if (*s) {
            void *p = slot_ptr(*s);
            from = stamp();
            ba_free(p, slot_size(*s));
            to = stamp();
            *s = 0;
        } else {
            size_t n = rng_range(x, 16, 1024);
            from = stamp();
            void *p = ba_alloc(n);
            to = stamp();
            touch(p, n);
            *s = slot_make(p, n);
        }
        if (timed) note(to - from > empty ? to - from - empty : 0);
        if (i % 8192 == 0) ba_tick();
    }
}

static int by_value(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

static void sort_longs(void)
{
    /* Shell sort: qsort of the C library allocates. */
    for (size_t gap = long_count / 2; gap; gap /= 2)
        for (size_t i = gap; i < long_count; i++)
            for (size_t j = i; j >= gap && by_value(&longs[j - gap], &longs[j]) > 0; j -= gap) {
                uint64_t t = longs[j];
                longs[j] = longs[j - gap];
                longs[j - gap] = t;
            }
}

static double quantile(uint64_t total, double q)
{
    uint64_t rank = (uint64_t)(q * (double)(total - 1)), seen = 0;
    for (size_t i = 0; i < FINE; i++) {
        seen += counts[i];
        if (seen > rank) return (double)i;
    }
    return long_count ? (double)longs[rank - seen < long_count ? rank - seen : long_count - 1] : FINE;
}

static void latency(const bench_case *c, const bench_settings *s)
{
    static const struct {
        double q;
        const char *name;
    } points[] = {{0.5, "p50_ns"}, {0.95, "p95_ns"}, {0.99, "p99_ns"}, {0.999, "p99_9_ns"}, {1, "max_ns"}};
    static const double curve[] = {0.1,   0.25,  0.5,    0.75,   0.9,     0.95, 0.99,
                                   0.995, 0.999, 0.9995, 0.9999, 0.99999, 1};
    bench_slot *slots = bench_table(c->a * sizeof *slots);
    bench_rng r = 13;
    uint64_t empty = empty_cost();
    ba_init();
    run(slots, 200000, empty, false, &r);
    size_t ops = scaled(s, 5000000);
    uint64_t from_ns = wall_ns(), from = stamp();
    run(slots, ops, empty, true, &r);
    double cycle_ns = (double)(wall_ns() - from_ns) / (double)(stamp() - from);
    sort_longs();
    for (size_t i = 0; i < sizeof points / sizeof *points; i++)
        put(points[i].name, quantile(ops, points[i].q) * cycle_ns);
    size_t step = 1;
    while (step < FINE - 1 && !counts[step])
        step++;
    put("step_ns", (double)step * cycle_ns);
    double ns[sizeof curve / sizeof *curve];
    for (size_t i = 0; i < sizeof curve / sizeof *curve; i++)
        ns[i] = quantile(ops, curve[i]) * cycle_ns;
    put_series("quantiles", curve, sizeof curve / sizeof *curve);
    put_series("quantile_ns", ns, sizeof curve / sizeof *curve);
}

static const bench_case cases[] = {{"ws10k", SLOTS, 0, false}, {NULL, 0, 0, false}};

const bench_row rows_latency[] = {{"latency", cases, latency}, {NULL, NULL, NULL}};

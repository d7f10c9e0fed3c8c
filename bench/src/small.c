/* random_mixed, tiny_hot and mid: small and medium blocks of one thread. One operation is one allocation
 * or one free. */
#include "mix.h"

static void mix_row(size_t count, size_t lo, size_t hi, size_t ops)
{
    mix m = {bench_table(count * sizeof(bench_slot)), count, lo, hi, 1};
    double before = (double)resident_bytes(), peak_before = (double)peak_resident_bytes();
    ba_init();
    mix_run(&m, count * 4 > 200000 ? count * 4 : 200000);
    bench_timer t;
    timer_start(&t);
    mix_run(&m, ops);
    timer_stop(&t, ops);
    put("rss_mib", ((double)resident_bytes() - before) / (double)MIB);
    put("peak_mib", ((double)peak_resident_bytes() - peak_before) / (double)MIB);
}

static void random_mixed(const bench_case *c, const bench_settings *s)
{
    mix_row(c->a, 16, 1024, scaled(s, 20000000));
}

static void mid(const bench_case *c, const bench_settings *s)
{
    mix_row(c->a, 8 * KIB, 32 * KIB, scaled(s, 10000000));
}

static void tiny_hot(const bench_case *c, const bench_settings *s)
{
    enum { SIZES = 4096 };
    static unsigned short sizes[SIZES];
    void *blocks[128];
    bench_rng r = 7;
    for (size_t i = 0; i < SIZES; i++)
        sizes[i] = (unsigned short)rng_range(rng_next(&r), 16, 128);
    ba_init();
    size_t batches = scaled(s, 200000), at = 0;
    bench_timer t;
    for (int measured = 0; measured < 2; measured++) {
        if (measured) timer_start(&t);
        for (size_t b = measured ? batches : 1000; b; b--) {
            for (size_t i = 0; i < c->a; i++) {
                blocks[i] = ba_alloc(sizes[(at + i) % SIZES]);
                touch(blocks[i], i);
            }
            for (size_t i = c->a; i--;)
                ba_free(blocks[i], sizes[(at + i) % SIZES]);
            at = (at + c->a) % SIZES;
            if (!(b & 127)) ba_tick();
        }
    }
    timer_stop(&t, batches * c->a * 2);
}

static const bench_case mixed_cases[] = {
    {"ws400", 400, 0, false},  {"ws10k", 10000, 0, false},  {"ws1M", 1000000, 0, false},
    {"ws100", 100, 0, true},   {"ws1k", 1000, 0, true},     {"ws4k", 4000, 0, true},
    {"ws40k", 40000, 0, true}, {"ws100k", 100000, 0, true}, {"ws400k", 400000, 0, true},
    {NULL, 0, 0, false},
};
static const bench_case tiny_cases[] = {{"batch100", 100, 0, false}, {NULL, 0, 0, false}};
static const bench_case mid_cases[] = {{"slots256", 256, 0, false}, {NULL, 0, 0, false}};

const bench_row rows_small[] = {
    {"random_mixed", mixed_cases, random_mixed},
    {"tiny_hot", tiny_cases, tiny_hot},
    {"mid", mid_cases, mid},
    {NULL, NULL, NULL},
};

/* battle: N blocks of 16 bytes. Resident bytes per object at the peak, what stays after all were freed,
 * and what stays after a trim. */
#include "harness.h"
#include BENCH_ADAPTER

enum { SIZE = 16 };

static void battle(const bench_case *c, const bench_settings *s)
{
    (void)s;
    size_t n = c->a;
    void **blocks = bench_table(n * sizeof *blocks);
    double before = (double)resident_bytes();
    bench_timer t;
    timer_start(&t);
    ba_init();
    for (size_t i = 0; i < n; i++) {
        blocks[i] = ba_alloc(SIZE);
        touch(blocks[i], i);
    }
    double peak = (double)resident_bytes();
    for (size_t i = 0; i < n; i++)
        ba_free(blocks[i], SIZE);
    timer_stop(&t, n * 2);
    double freed = (double)resident_bytes();
    ba_trim();
    double trimmed = (double)resident_bytes();
    put("bytes_per_object", (peak - before) / (double)n);
    put("after_free_kib", (freed - before) / (double)KIB);
    put("after_trim_kib", (trimmed - before) / (double)KIB);
}

static const bench_case cases[] = {
    {"100K", 100000, 0, false}, {"500K", 500000, 0, false}, {"1M", 1000000, 0, false},
    {"2M", 2000000, 0, false},  {"5M", 5000000, 0, false},  {NULL, 0, 0, false},
};

const bench_row rows_battle[] = {{"battle", cases, battle}, {NULL, NULL, NULL}};

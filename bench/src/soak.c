/* soak: the steady mix for minutes. Throughput is counted against CPU time in windows, resident
 * memory at the end of each. One operation is one allocation or one free. */
#include "steady.h"

#include <math.h>

enum { WINDOWS = 480 };

static double mean(const double *v, size_t from, size_t to)
{
    double sum = 0;
    for (size_t i = from; i < to; i++)
        sum += v[i];
    return sum / (double)(to - from);
}

static void soak(const bench_case *c, const bench_settings *s)
{
    static double rate[WINDOWS], rss[WINDOWS];
    steady_slot *slots = bench_table(STEADY_SLOTS * sizeof *slots);
    double before = (double)resident_bytes();
    bench_rng r = c->a;
    ba_init();
    for (int i = 0; i < 50; i++)
        steady_batch(slots, &r);
    uint64_t window = (uint64_t)(s->minutes * 60e9 / WINDOWS), ops = 0;
    bench_timer t;
    timer_start(&t);
    uint64_t end = wall_ns();
    for (size_t w = 0; w < WINDOWS; w++) {
        uint64_t cpu = cpu_ns(), done = 0;
        end += window;
        do {
            steady_batch(slots, &r);
            done += STEADY_BATCH;
        } while (wall_ns() < end);
        rate[w] = (double)done / (double)(cpu_ns() - cpu) * 1000;
        rss[w] = ((double)resident_bytes() - before) / (double)MIB;
        ops += done;
    }
    timer_stop(&t, ops);
    double rate_mean = mean(rate, 0, WINDOWS), squares = 0;
    for (size_t w = 0; w < WINDOWS; w++)
        squares += (rate[w] - rate_mean) * (rate[w] - rate_mean);
    double early = mean(rss, WINDOWS / 4, WINDOWS / 2), late = mean(rss, WINDOWS * 3 / 4, WINDOWS);
    put("mops", rate_mean);
    put("cv_percent", sqrt(squares / WINDOWS) / rate_mean * 100);
    put("rss_mib", late);
    put("rss_drift_percent", early > 0 ? (late - early) / early * 100 : 0);
    put_series("rss_series_mib", rss, WINDOWS);
    put_series("rate_series_mops", rate, WINDOWS);
}

static const bench_case cases[] = {{"steady", 23, 0, false}, {NULL, 0, 0, false}};

const bench_row rows_soak[] = {{"soak", cases, soak}, {NULL, NULL, NULL}};

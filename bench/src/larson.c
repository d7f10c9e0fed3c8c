/* larson by one thread, which lives on. With threads that die: threads.c. */
#include "larson.h"

static void larson_row(const bench_case *c, const bench_settings *s)
{
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

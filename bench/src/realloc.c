/* realloc: buffers that grow in turn, by half up to 1 MiB, or by 64 bytes up to 16 KiB. The new end of the
 * buffer is written. One operation is one growth step. */
#include "harness.h"
#include BENCH_ADAPTER

enum { BUFFERS = 4 };

typedef struct growth {
    char *p[BUFFERS];
    size_t n[BUFFERS];
    size_t first, last, step; /* step 0: by half */
} growth;

static void grow(growth *g, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        size_t b = i % BUFFERS, old = g->n[b], n = g->step ? old + g->step : old + old / 2;
        if (n > g->last) {
            ba_free(g->p[b], old);
            n = g->first;
            old = 0;
            g->p[b] = ba_alloc(n);
        } else {
            g->p[b] = ba_realloc(g->p[b], old, n);
        }
        g->n[b] = n;
        for (size_t at = old; at < n; at += 4096)
            *(volatile char *)(g->p[b] + at) = 1;
        *(volatile char *)(g->p[b] + n - 1) = 1;
        if (i % 1024 == 0) ba_tick();
    }
}

static void realloc_row(const bench_case *c, const bench_settings *s)
{
    growth g = {{NULL}, {0}, c->a ? 64 : 16, c->a ? 16 * KIB : MIB, c->a};
    ba_init();
    for (size_t b = 0; b < BUFFERS; b++) {
        g.n[b] = g.first;
        g.p[b] = ba_alloc(g.first);
        touch(g.p[b], b);
    }
    grow(&g, c->b / 20);
    size_t count = scaled(s, c->b);
    bench_timer t;
    timer_start(&t);
    grow(&g, count);
    timer_stop(&t, count);
}

static const bench_case cases[] = {
    {"x1.5", 0, 100000, false}, {"plus64", 64, 5000000, false}, {NULL, 0, 0, false}};

const bench_row rows_realloc[] = {{"realloc", cases, realloc_row}, {NULL, NULL, NULL}};

/* json64K, mir512K, vm2M: allocate one block, touch every page, free it. mixed: four blocks held, a random
 * one replaced by one of the three sizes. recur: blocks of one size or of two in turn, as those of the first
 * rows, and lists that grow by an eighth. One operation is one block, or one list. */
#include "harness.h"
#include BENCH_ADAPTER

static void request_loop(size_t n, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        char *p = ba_alloc(n);
        touch_pages(p, n);
        ba_free(p, n);
        if (i % 64 == 0) ba_tick();
    }
}

static void single(const bench_case *c, const bench_settings *s)
{
    ba_init();
    request_loop(c->a, 100);
    size_t count = scaled(s, c->b);
    bench_timer t;
    timer_start(&t);
    request_loop(c->a, count);
    timer_stop(&t, count);
}

enum { HELD = 4 };
typedef struct held {
    void *p[HELD];
    size_t n[HELD];
    bench_rng rng;
} held;

static void mixed_loop(held *h, size_t count)
{
    static const size_t sizes[] = {64 * KIB, 512 * KIB, 2 * MIB};
    for (size_t i = 0; i < count; i++) {
        uint64_t x = rng_next(&h->rng);
        size_t at = rng_index(x, HELD);
        if (h->p[at]) ba_free(h->p[at], h->n[at]);
        h->n[at] = sizes[rng_range(x, 0, 2)];
        h->p[at] = ba_alloc(h->n[at]);
        touch_pages(h->p[at], h->n[at]);
        if (i % 64 == 0) ba_tick();
    }
}

static void mixed(const bench_case *c, const bench_settings *s)
{
    held h = {{NULL}, {0}, 3};
    ba_init();
    mixed_loop(&h, 1000);
    size_t count = scaled(s, c->a);
    bench_timer t;
    timer_start(&t);
    mixed_loop(&h, count);
    timer_stop(&t, count);
}

enum { TURN, LIST };

static void in_turn(size_t count)
{
    for (size_t i = 0; i < count; i++)
        request_loop(i % 2 ? 16000000 : 2400000, 1);
}

static void lists(size_t count)
{
    for (size_t i = 0; i < count; i++) {
        size_t n = KIB;
        char *p = ba_alloc(n);
        touch_pages(p, n);
        for (size_t old = n; (n += n / 8) < 16000000; old = n) {
            p = ba_realloc(p, old, n);
            touch_pages(p + old, n - old);
        }
        ba_free(p, n - n / 9);
        ba_tick();
    }
}

static void recur(const bench_case *c, const bench_settings *s)
{
    void (*loop)(size_t) = c->a == TURN ? in_turn : lists;
    ba_init();
    loop(20);
    size_t count = scaled(s, c->b);
    bench_timer t;
    timer_start(&t);
    loop(count);
    timer_stop(&t, count);
}

static const bench_case json_cases[] = {{"64K", 64 * KIB, 1000000, false}, {NULL, 0, 0, false}};
static const bench_case mir_cases[] = {{"512K", 512 * KIB, 100000, false}, {NULL, 0, 0, false}};
static const bench_case vm_cases[] = {{"2M", 2 * MIB, 20000, false}, {NULL, 0, 0, false}};
static const bench_case same_cases[] = {
    {"2.4M", 2400000, 20000, false}, {"16M", 16000000, 3000, false}, {NULL, 0, 0, false}};
static const bench_case recur_cases[] = {
    {"turn", TURN, 4000, false}, {"list", LIST, 500, false}, {NULL, 0, 0, false}};
static const bench_case mixed_cases[] = {{"held4", 40000, 0, false}, {NULL, 0, 0, false}};

const bench_row rows_big[] = {
    {"json64K", json_cases, single},
    {"mir512K", mir_cases, single},
    {"vm2M", vm_cases, single},
    {"mixed", mixed_cases, mixed},
    {"same", same_cases, single},
    {"recur", recur_cases, recur},
    {NULL, NULL, NULL},
};

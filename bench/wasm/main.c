/* wasm_bench_<runtime> GUEST.wasm ROW VARIANT [COUNT]: one row of the table as a line of JSON. */
#define _GNU_SOURCE
#include "bench.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const runtime *const rt = &bench_runtime;

const char bench_script[] =
    "let text = JSON.stringify(Array.from({length: 8}, (_, i) => ({id: i, sum: i * i})));"
    "JSON.parse(text).reduce((sum, item) => sum + item.sum, 0)";

static guest load(const char *path)
{
    const char *name = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
    guest g = {"small", strstr(name, "-ready") != NULL, NULL, 0};
    if (strncmp(name, "quickjs", 7) == 0) g.name = "qjs";
    if (strncmp(name, "big", 3) == 0) g.name = "big";
    g.bytes = bench_read(path, &g.size);
    return g;
}

/* Figures of /proc/self: resident KiB, mappings. */
static double resident_kb(void)
{
    FILE *f = fopen("/proc/self/statm", "r");
    long all, resident;
    if (!f || fscanf(f, "%ld %ld", &all, &resident) != 2) bench_fail("/proc/self/statm");
    fclose(f);
    return (double)resident * (double)sysconf(_SC_PAGESIZE) / 1024;
}

static long mappings(void)
{
    FILE *f = fopen("/proc/self/maps", "r");
    long lines = 0;
    for (int c; f && (c = fgetc(f)) != EOF;)
        lines += c == '\n';
    if (f) fclose(f);
    return lines;
}

/* Create, one call, destroy, n times. */
static void cycles(unsigned first, unsigned n, function f)
{
    for (unsigned i = first; i < first + n; i++) {
        void *instance = rt->open(i);
        rt->call(instance, f, (int32_t)i);
        rt->close(instance);
    }
}

static void row_cycle(unsigned n, function f)
{
    cycles(0, n / 10 + 1, f);
    double start = bench_seconds(CLOCK_PROCESS_CPUTIME_ID);
    cycles(0, n, f);
    printf("{\"cpu_us\": %.4f}\n", (bench_seconds(CLOCK_PROCESS_CPUTIME_ID) - start) * 1e6 / n);
}

/* Threads that run cycles at the same time. */
typedef struct worker {
    pthread_t thread;
    pthread_barrier_t *begin;
    function f;
    unsigned n, number;
    double start, end;
} worker;

static void *work(void *argument)
{
    worker *w = argument;
    if (rt->thread_start) rt->thread_start();
    cycles(w->number * 1000, w->n / 10 + 1, w->f);
    pthread_barrier_wait(w->begin);
    w->start = bench_seconds(CLOCK_MONOTONIC);
    cycles(w->number * 1000, w->n, w->f);
    w->end = bench_seconds(CLOCK_MONOTONIC);
    if (rt->thread_end) rt->thread_end();
    return NULL;
}

static void row_rate(unsigned n, unsigned threads, function f)
{
    worker workers[2];
    pthread_barrier_t begin;
    pthread_barrier_init(&begin, NULL, threads);
    for (unsigned i = 0; i < threads; i++) {
        workers[i] = (worker){0, &begin, f, n, i, 0, 0};
        if (pthread_create(&workers[i].thread, NULL, work, &workers[i]) != 0) bench_fail("no thread");
    }
    double start = 0, end = 0;
    for (unsigned i = 0; i < threads; i++) {
        pthread_join(workers[i].thread, NULL);
        if (i == 0 || workers[i].start < start) start = workers[i].start;
        if (workers[i].end > end) end = workers[i].end;
    }
    pthread_barrier_destroy(&begin);
    printf("{\"per_s\": %.1f}\n", n * threads / (end - start));
}

static void row_live(unsigned n, function f)
{
    void **instances = calloc(n, sizeof *instances);
    if (!instances) bench_fail("no memory");
    /* What the runtime sets up once is not what an instance costs. */
    cycles(0, 1, f);
    double before = resident_kb();
    long maps = mappings();
    for (unsigned i = 0; i < n; i++) {
        instances[i] = rt->open(i);
        rt->call(instances[i], f, (int32_t)i);
    }
    double full = resident_kb();
    long maps_full = mappings();
    double start = bench_seconds(CLOCK_PROCESS_CPUTIME_ID);
    for (unsigned i = 0; i < n; i++)
        rt->close(instances[i]);
    double close_us = (bench_seconds(CLOCK_PROCESS_CPUTIME_ID) - start) * 1e6 / n;
    double left = resident_kb();
    free(instances);
    printf("{\"live\": %u, \"rss_kb\": %.2f, \"mappings\": %.3f, \"left_mb\": %.2f, \"close_us\": %.3f}\n", n,
           (full - before) / n, (double)(maps_full - maps) / n, (left - before) / 1024, close_us);
}

static void row_grow(unsigned n)
{
    enum { EACH = 64 };
    double spent = 0;
    for (unsigned i = 0; i < n; i++) {
        void *instance = rt->open(i);
        double start = bench_seconds(CLOCK_PROCESS_CPUTIME_ID);
        for (int k = 0; k < EACH; k++) {
            if (rt->call(instance, FN_GROW, 1) < 0) bench_fail("the memory did not grow");
        }
        spent += bench_seconds(CLOCK_PROCESS_CPUTIME_ID) - start;
        rt->close(instance);
    }
    printf("{\"cpu_us\": %.4f}\n", spent * 1e6 / n / EACH);
}

/* One isolated request: reset and request where the variant can, else a new instance with its start. */
static void row_isolate(unsigned n)
{
    void *instance = rt->open(0);
    rt->init(instance);
    /* Copied before the image is taken: a page that was only read costs a scan for written pages, too. */
    size_t size;
    void *memory = rt->memory(instance, &size);
    uint8_t *copy = malloc(size);
    if (!copy) bench_fail("no memory");
    memcpy(copy, memory, size);
    bool reset = rt->image(instance);
    int32_t expected = rt->call(instance, FN_REQUEST, 1);
    double start = 0;
    for (unsigned i = 0, warm = n / 10 + 2; i < n + warm; i++) {
        if (i == warm) start = bench_seconds(CLOCK_PROCESS_CPUTIME_ID);
        if (reset) {
            rt->reset(instance);
        } else {
            rt->close(instance);
            instance = rt->open(0);
            rt->init(instance);
        }
        if (rt->call(instance, FN_REQUEST, 1) != expected) bench_fail("a request had another result");
    }
    double spent = bench_seconds(CLOCK_PROCESS_CPUTIME_ID) - start;
    if (reset) {
        rt->reset(instance);
        size_t now;
        memory = rt->memory(instance, &now);
        if (now != size || memcmp(copy, memory, size) != 0) bench_fail("the memory is not that of the image");
    }
    rt->close(instance);
    free(copy);
    printf("{\"cpu_us\": %.4f, \"reset\": %s}\n", spent * 1e6 / n, reset ? "true" : "false");
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "--version") == 0) {
        printf("%s\n", rt->version());
        for (const char *const *v = rt->variants; *v; v++)
            printf("%s\n", *v);
        return 0;
    }
    if (argc != 5) bench_fail("usage: GUEST.wasm ROW VARIANT COUNT, or --version");
    const char *row = argv[2], *variant = argv[3];
    unsigned n = (unsigned)strtoul(argv[4], NULL, 10);
    const char *const *v = rt->variants;
    while (*v && strcmp(*v, variant) != 0)
        v++;
    if (!*v || n == 0) bench_fail("no variant '%s', or a count of 0", variant);
    guest g = load(argv[1]);
    rt->start(*v, &g, strcmp(row, "live") == 0 || strcmp(row, "many") == 0 ? n : 100);
    if (strcmp(row, "cycle") == 0) row_cycle(n, FN_REQUEST);
    else if (strcmp(row, "empty") == 0) row_cycle(n, FN_NOTHING);
    else if (strcmp(row, "rate1") == 0) row_rate(n, 1, FN_REQUEST);
    else if (strcmp(row, "rate2") == 0) row_rate(n, 2, FN_REQUEST);
    else if (strcmp(row, "empty1") == 0) row_rate(n, 1, FN_NOTHING);
    else if (strcmp(row, "empty2") == 0) row_rate(n, 2, FN_NOTHING);
    else if (strcmp(row, "live") == 0) row_live(n, FN_REQUEST);
    else if (strcmp(row, "many") == 0) row_live(n, FN_NOTHING);
    else if (strcmp(row, "grow") == 0) row_grow(n);
    else if (strcmp(row, "isolate") == 0) row_isolate(n);
    else bench_fail("no row '%s'", row);
    rt->stop();
    free(g.bytes);
    return 0;
}

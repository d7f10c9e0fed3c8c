#include "harness.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* getpgid of these never succeeds and no allocator calls it: visible marks in a system call trace. */
enum { MARK_START = 0x5000001, MARK_STOP = 0x5000002 };

void touch_pages(void *p, size_t n)
{
    volatile char *c = p;
    for (size_t i = 0; i < n; i += 4096)
        c[i] = 1;
}

void *bench_table(size_t bytes)
{
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) bench_fail("no memory for the tables of the harness");
    for (size_t i = 0; i < bytes; i += 4096)
        ((volatile char *)p)[i] = 0;
    return p;
}

static uint64_t clock_ns(clockid_t id)
{
    struct timespec t;
    clock_gettime(id, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

uint64_t wall_ns(void)
{
    return clock_ns(CLOCK_MONOTONIC);
}

uint64_t cpu_ns(void)
{
    return clock_ns(CLOCK_PROCESS_CPUTIME_ID);
}

uint64_t page_faults(void)
{
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return (uint64_t)(u.ru_minflt + u.ru_majflt);
}

/* The value of a line "Key:   123 kB", in bytes. Plain read: stdio would allocate. */
static size_t proc_value(const char *path, const char *key)
{
    static char text[8192];
    int fd = open(path, O_RDONLY);
    if (fd < 0) bench_fail("cannot read /proc/self");
    size_t used = 0;
    ssize_t got;
    while (used < sizeof text - 1 && (got = read(fd, text + used, sizeof text - 1 - used)) > 0)
        used += (size_t)got;
    close(fd);
    text[used] = 0;
    const char *at = strstr(text, key);
    if (!at) bench_fail("/proc/self lacks a field");
    return (size_t)strtoull(at + strlen(key), NULL, 10) * KIB;
}

size_t resident_bytes(void)
{
    return proc_value("/proc/self/smaps_rollup", "\nAnonymous:");
}

size_t roughly_resident_bytes(void)
{
    return proc_value("/proc/self/status", "\nVmRSS:");
}

size_t peak_resident_bytes(void)
{
    return proc_value("/proc/self/status", "\nVmHWM:");
}

void timer_start(bench_timer *t)
{
    syscall(SYS_getpgid, MARK_START);
    t->faults = page_faults();
    t->wall = wall_ns();
    t->cpu = cpu_ns();
}

void timer_stop(bench_timer *t, uint64_t ops)
{
    uint64_t cpu = cpu_ns() - t->cpu, wall = wall_ns() - t->wall, faults = page_faults() - t->faults;
    syscall(SYS_getpgid, MARK_STOP);
    put("cpu_ns", (double)cpu / (double)ops);
    put("wall_ns", (double)wall / (double)ops);
    put("faults_per_op", (double)faults / (double)ops);
    put("ops", (double)ops);
}

static char out[1 << 16];
static size_t out_used;

static void emit(const char *key, const char *value)
{
    int n = snprintf(out + out_used, sizeof out - out_used, "%s\"%s\": %s", out_used ? ", " : "", key, value);
    if (n < 0 || (size_t)n >= sizeof out - out_used) bench_fail("too many figures");
    out_used += (size_t)n;
}

void put(const char *key, double value)
{
    char text[40];
    snprintf(text, sizeof text, "%.9g", value);
    emit(key, text);
}

void put_text(const char *key, const char *value)
{
    char text[200];
    snprintf(text, sizeof text, "\"%s\"", value);
    emit(key, text);
}

void put_series(const char *key, const double *values, size_t count)
{
    static char text[1 << 15];
    size_t used = 0;
    for (size_t i = 0; i < count; i++) {
        int n = snprintf(text + used, sizeof text - used, "%s%.6g", i ? ", " : "[", values[i]);
        if (n < 0 || (size_t)n >= sizeof text - used - 2) bench_fail("series too long");
        used += (size_t)n;
    }
    memcpy(text + used, count ? "]" : "[]", 3);
    emit(key, text);
}

void bench_print(void)
{
    printf("{%s}\n", out);
}

size_t scaled(const bench_settings *s, size_t n)
{
    size_t v = (size_t)((double)n * s->scale);
    return v ? v : 1;
}

void bench_fail(const char *what)
{
    fprintf(stderr, "bench: %s\n", what);
    exit(1);
}

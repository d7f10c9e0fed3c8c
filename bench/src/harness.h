/* What every row uses: settings, random numbers, memory outside the allocator, clocks, resident memory
 * and the list of measured figures. The allocator under test is chosen by BENCH_ADAPTER at compile time. */
#ifndef BENCH_HARNESS_H
#define BENCH_HARNESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define KIB ((size_t)1024)
#define MIB (KIB * 1024)

typedef struct bench_settings {
    double scale;   /* multiplies operation counts; 1 = the published figures */
    double minutes; /* length of the soak */
} bench_settings;

/* One configuration of a row; a and b mean what the row says (in rows_threads, b is the number of threads) */
typedef struct bench_case {
    const char *name;
    size_t a, b;
    bool curve; /* only for the plots over a range */
} bench_case;

typedef struct bench_row {
    const char *name;
    const bench_case *cases; /* ends with name == NULL */
    void (*run)(const bench_case *c, const bench_settings *s);
} bench_row;

/* The rows of each source file, each list ending with name == NULL. */
extern const bench_row rows_small[], rows_larson[], rows_battle[], rows_big[], rows_fragmentation[],
    rows_realloc[], rows_latency[], rows_ctx[], rows_startup[], rows_soak[], rows_threads[], rows_cold[];

/* ---- Random numbers: a 64-bit congruential generator, whose upper bits are used. ---- */

typedef uint64_t bench_rng;

static inline uint64_t rng_next(bench_rng *r)
{
    *r = *r * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *r;
}
/* 0..n-1 from the upper 32 bits. */
static inline size_t rng_index(uint64_t x, size_t n)
{
    return (size_t)(((x >> 32) * n) >> 32);
}
/* lo..hi from bits 16 to 31, so that one step serves an index and a size. */
static inline size_t rng_range(uint64_t x, size_t lo, size_t hi)
{
    return lo + ((((x >> 16) & 0xffff) * (hi - lo + 1)) >> 16);
}

/* ---- A block and its size in one word: sized frees then need no second array. ---- */

typedef uint64_t bench_slot;

static inline bench_slot slot_make(void *p, size_t n)
{
    return (uint64_t)(uintptr_t)p | (uint64_t)n << 48;
}
static inline void *slot_ptr(bench_slot s)
{
    return (void *)(uintptr_t)(s << 16 >> 16);
}
static inline size_t slot_size(bench_slot s)
{
    return (size_t)(s >> 48);
}

/* A program that uses its block: the first word is written. */
static inline void touch(void *p, size_t value)
{
    *(volatile uint64_t *)p = value;
}
void touch_pages(void *p, size_t n);

/* ---- Memory of the harness, zero, mapped and touched: never from the allocator under test. ---- */
void *bench_table(size_t bytes);

/* ---- Clocks and the kernel's accounts ---- */
uint64_t wall_ns(void);
uint64_t cpu_ns(void);
uint64_t page_faults(void);
/* Anonymous memory by smaps_rollup: exact, without the pages of the program. */
size_t resident_bytes(void);
size_t roughly_resident_bytes(void); /* VmRSS: cheap, whatever the size of the heap */
size_t peak_resident_bytes(void);    /* VmHWM */

/* ---- Measuring: the steady part of a row. A marker system call at both ends lets strace count. ---- */
typedef struct bench_timer {
    uint64_t wall, cpu, faults;
} bench_timer;
void timer_start(bench_timer *t);
/* Puts cpu_ns and wall_ns per operation and faults per operation. */
void timer_stop(bench_timer *t, uint64_t ops);

/* ---- Figures, printed as one JSON object by main ---- */
void put(const char *key, double value);
void put_text(const char *key, const char *value);
void put_series(const char *key, const double *values, size_t count);
void bench_print(void);

size_t scaled(const bench_settings *s, size_t n);
/* Ends the process with status 1 and one line on stderr. */
_Noreturn void bench_fail(const char *what);

#endif

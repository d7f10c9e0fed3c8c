#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "common/costs.h"

#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

enum { PAGES = 32, CALLS = 8, HUGE = 2 << 20, LEAST_NS = 50, MOST_NS = 50000 };

static uint64_t clock_ns(clockid_t clock)
{
    struct timespec t;
    if (clock_gettime(clock, &t) != 0) return 0;
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

uint64_t hkc_costs_cpu_ns(void)
{
    return clock_ns(CLOCK_PROCESS_CPUTIME_ID);
}

static uint64_t thread_ns(void)
{
    return clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

static long faults(void)
{
    struct rusage used;
    return getrusage(RUSAGE_THREAD, &used) == 0 ? used.ru_minflt : 0;
}

/* A clock that is too coarse, or a program whose pages are locked, gives what is out of range. */
static unsigned within(uint64_t ns)
{
    return (unsigned)(ns < LEAST_NS ? LEAST_NS : ns > MOST_NS ? MOST_NS : ns);
}

static uint64_t touch(char *at, size_t pages, size_t page)
{
    const uint64_t before = thread_ns();
    for (size_t i = 0; i < pages; i++)
        ((volatile char *)at)[i * page] = 1;
    return thread_ns() - before;
}

/* A page of a huge page; where the system gives none, any page. */
static unsigned huge_ns(unsigned fault_ns, size_t page)
{
    enum { LOOKED_AT = 4, SMALL = 512 };
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    char *at = mmap(NULL, 2 * HUGE, PROT_READ | PROT_WRITE, flags, -1, 0);
    if (at == MAP_FAILED) return 0;
    char *start = (char *)(((uintptr_t)at + HUGE - 1) & ~((uintptr_t)HUGE - 1));
    unsigned ns = fault_ns;
    if (madvise(start, HUGE, MADV_HUGEPAGE) == 0) {
        const long before = faults();
        const uint64_t took = touch(start, LOOKED_AT, page);
        if (faults() - before < LOOKED_AT / 2) ns = (unsigned)(took / SMALL);
    }
    munmap(at, 2 * HUGE);
    return ns ? ns : 1;
}

void hkc_costs_measure(hak_learner_options *options)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), size = PAGES * page;
    char *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) return;
    madvise(at, size, MADV_NOHUGEPAGE);
    options->fault_ns = within(touch(at, PAGES, page) / PAGES);
    const uint64_t before = thread_ns();
    for (size_t i = 0; i < CALLS; i++)
        madvise(at + i * size / CALLS, size / CALLS, MADV_DONTNEED);
    options->call_ns = within((thread_ns() - before) / CALLS);
    munmap(at, size);
    options->huge_ns = huge_ns(options->fault_ns, page);
}

#define _GNU_SOURCE /* mremap, MAP_NORESERVE */
#include "os.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define PROT (PROT_READ | PROT_WRITE)
#define FLAGS (MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE)

static void *map_at(uintptr_t hint, size_t n, uintptr_t below)
{
    void *p = mmap((void *)hint, n, PROT, FLAGS, -1, 0);
    if (p == MAP_FAILED) return NULL;
    if (below && (uintptr_t)p + n > below) {
        munmap(p, n);
        return NULL;
    }
    return p;
}

/* The kernel maps below 2^47 on x86-64 of its own accord; elsewhere, and for lower bounds, walk hints. */
static void *map_below(size_t n, uintptr_t below)
{
    void *p = map_at(0, n, below);
    if (p || !below || n >= below) return p;
    uintptr_t step = (uintptr_t)hk_align_up(hk_max(n, (below - n) / 64), HK_CHUNK);
    for (uintptr_t hint = HK_CHUNK * 8; hint + n <= below; hint += step) {
        p = map_at(hint, n, below);
        if (p) return p;
    }
    return NULL;
}

static void *os_reserve(void *user, size_t n, size_t align, uintptr_t below)
{
    (void)user;
    if (align <= HK_PAGE) return map_below(n, below);
    if (n > SIZE_MAX - align) return NULL;
    char *p = map_below(n + align, below);
    if (!p) return NULL;
    char *start = (char *)hk_align_up((uintptr_t)p, align);
    if (start > p) munmap(p, (size_t)(start - p));
    munmap(start + n, (size_t)(p + align - start));
    return start;
}

/* What the kernel keeps is cleared by hand: locked pages, and parts of pages where these are larger than
 * HK_PAGE, for it would round up to what belongs to others. */
static void os_decommit(void *user, void *p, size_t n)
{
    (void)user;
    /* sysconf() would make 64 KiB more of glibc resident in a small program. */
    size_t page = (size_t)getpagesize();
    char *at = p, *from = (char *)hk_align_up((uintptr_t)at, page), *end = at + n;
    char *to = (char *)((uintptr_t)end & ~(uintptr_t)(page - 1));
    if (from >= to || madvise(from, (size_t)(to - from), MADV_DONTNEED) != 0) {
        memset(at, 0, n);
        return;
    }
    memset(at, 0, (size_t)(from - at));
    memset(to, 0, (size_t)(end - to));
}

static void os_release(void *user, void *p, size_t n)
{
    (void)user;
    munmap(p, n);
}

static void *os_remap(void *user, void *p, size_t old_n, size_t n, uintptr_t below)
{
    (void)user;
    void *q = below && (uintptr_t)p + n > below ? MAP_FAILED : mremap(p, old_n, n, 0);
    if (q != MAP_FAILED) return q;
    if (!below || below >= HK_POINTERS_BELOW) {
        q = mremap(p, old_n, n, MREMAP_MAYMOVE);
        if (q == MAP_FAILED) return NULL;
        if (!below || (uintptr_t)q + n <= below) return q;
        mremap(q, n, old_n, MREMAP_MAYMOVE | MREMAP_FIXED, p);
        return NULL;
    }
    void *target = map_below(n, below);
    if (!target) return NULL;
    q = mremap(p, old_n, n, MREMAP_MAYMOVE | MREMAP_FIXED, target);
    if (q == MAP_FAILED) {
        munmap(target, n);
        return NULL;
    }
    return q;
}

static void os_huge(void *user, void *p, size_t n)
{
    (void)user;
    madvise(p, n, MADV_HUGEPAGE);
}

static uint64_t os_clock(void *user)
{
    struct timespec t;
    (void)user;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static uint64_t os_thread_id(void *user)
{
    (void)user;
    return (uint64_t)gettid();
}

static bool os_thread_alive(void *user, uint64_t id)
{
    (void)user;
    return tgkill(getpid(), (pid_t)id, 0) == 0 || errno != ESRCH;
}

static void os_populate(void *user, void *p, size_t n)
{
    (void)user;
#ifdef MADV_POPULATE_WRITE
    int error = errno; /* kernels before 5.14 refuse */
    madvise(p, n, MADV_POPULATE_WRITE);
    errno = error;
#else
    (void)p, (void)n;
#endif
}

HAK_API void hak_os_default(hak_os *os)
{
    *os = (hak_os){sizeof *os, NULL,    os_reserve, NULL,         os_decommit,     os_release,
                   os_remap,   os_huge, os_clock,   os_thread_id, os_thread_alive, os_populate};
}

const char *hk_os_error(const hak_os *os)
{
    if (os->size != sizeof *os) return "hak_os.size is not sizeof(hak_os)";
    if (!os->reserve || !os->decommit || !os->release || !os->clock)
        return "hak_os needs reserve, decommit, release and clock";
    return NULL;
}

void hk_lock_wait(hk_lock *lock)
{
    for (unsigned spins = 0; atomic_flag_test_and_set_explicit(lock, memory_order_acquire); spins++) {
        if (spins > 64) sched_yield();
    }
}

_Noreturn void hk_os_abort(void)
{
    abort();
}

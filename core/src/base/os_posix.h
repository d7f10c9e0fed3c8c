/* What os_linux.c and os_darwin.c share: pages by mmap and its kin. Definitions, for one of the two. */
#ifndef HK_OS_POSIX_H
#define HK_OS_POSIX_H

#include "base/os.h"

#include "base/random.h"

#include <errno.h>
#include <sched.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define HK_PROT (PROT_READ | PROT_WRITE)
/* Without MAP_NORESERVE: the kernel refuses a size that the machine cannot have. */
#define HK_FLAGS (MAP_PRIVATE | MAP_ANONYMOUS)

static uint64_t os_clock(void *user)
{
    struct timespec t;
    (void)user;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* MAP_FAILED = there is none; NULL = it lies too high. */
static void *posix_map_at(uintptr_t hint, size_t n, uintptr_t below, int protection)
{
    void *p = mmap((void *)hint, n, protection, HK_FLAGS, -1, 0);
    if (p == MAP_FAILED || !below || (uintptr_t)p + n <= below) return p;
    munmap(p, n);
    return NULL;
}

/* The kernel maps below 2^47 on x86-64 of its own accord. Elsewhere, and for lower bounds, it takes hints;
 * which are free nobody remembers here, so they are drawn: one in ten fails where a tenth is in use. Where it
 * refuses a hint it has no room for n bytes, or the process may have no more: it would refuse all others. */
static void *posix_map_below(size_t n, uintptr_t below, int protection)
{
    enum { DRAWS = 512, FIRST = 8 * HK_CHUNK };
    void *p = posix_map_at(0, n, below, protection);
    if (p && p != MAP_FAILED) return p;
    if (!below || n >= below || below - n < FIRST) return NULL;
    uint64_t places = (below - n - FIRST) / HK_CHUNK + 1, random = os_clock(NULL) ^ (uintptr_t)&p;
    p = NULL;
    for (int i = 0; i < DRAWS && !p; i++)
        p = posix_map_at(FIRST + hk_random_next(&random) % places * HK_CHUNK, n, below, protection);
    return p == MAP_FAILED ? NULL : p;
}

static void *posix_reserve(size_t n, size_t align, uintptr_t below, int protection)
{
    if (align <= HK_PAGE) return posix_map_below(n, below, protection);
    if (n > SIZE_MAX / 2 - align) return NULL;
    /* On kernels with larger pages n may end within a page, which munmap refuses. */
    n = hk_align_up(n, (size_t)getpagesize());
    char *p = posix_map_below(n + align, below, protection);
    if (!p) return NULL;
    char *start = (char *)hk_align_up((uintptr_t)p, align);
    if (start > p) munmap(p, (size_t)(start - p));
    munmap(start + n, (size_t)(p + align - start));
    return start;
}

/* Without access: what is reserved and not used is neither dumped nor locked, and no limit but that of
 * addresses counts it. */
static void *os_reserve(void *user, size_t n, size_t align, uintptr_t below)
{
    (void)user;
    return posix_reserve(n, align, below, PROT_NONE);
}

static int posix_open(void *p, size_t n)
{
    size_t page = (size_t)getpagesize();
    uintptr_t from = (uintptr_t)p & ~(uintptr_t)(page - 1), to = hk_align_up((uintptr_t)p + n, page);
    return mprotect((void *)from, to - from, HK_PROT);
}

/* A space knows by this function that pages stay usable after decommit. */
static int os_commit(void *user, void *p, size_t n)
{
    (void)user;
    return posix_open(p, n);
}

bool hk_os_opens(const hak_os *os)
{
    return os->commit == os_commit;
}

/* Gives back whole pages by `give`. What the kernel keeps is cleared by hand: locked pages, and parts of
 * pages where these are larger than HK_PAGE, for it would round up to what belongs to others. */
HK_INLINE void posix_decommit(void *p, size_t n, bool (*give)(void *p, size_t n))
{
    /* sysconf() would make 64 KiB more of glibc resident in a small program. */
    size_t page = (size_t)getpagesize();
    char *at = p, *from = (char *)hk_align_up((uintptr_t)at, page), *end = at + n;
    char *to = (char *)((uintptr_t)end & ~(uintptr_t)(page - 1));
    if (from >= to || !give(from, (size_t)(to - from))) {
        memset(at, 0, n);
        return;
    }
    memset(at, 0, (size_t)(from - at));
    memset(to, 0, (size_t)(end - to));
}

/* This function and decommit keep errno, as free() should. */
static void os_release(void *user, void *p, size_t n)
{
    int error = errno;
    (void)user;
    munmap(p, n);
    errno = error;
}

static int os_protect(void *user, void *p, size_t n, bool access)
{
    (void)user;
    size_t page = (size_t)getpagesize();
    /* The kernel would open what follows, up to the end of its page. */
    if (((uintptr_t)p | n) & (page - 1)) return -1;
    int error = errno, rc = mprotect(p, n, access ? HK_PROT : PROT_NONE);
    errno = error;
    return rc;
}

/* ---- The rest ---------------------------------------------------------------------------------------- */

void hk_os_yield(void)
{
    sched_yield();
}

size_t hk_os_page(void)
{
    return (size_t)getpagesize();
}

void *hk_os_map(size_t n, size_t align, uintptr_t below)
{
    return posix_reserve(n, align, below, HK_PROT);
}

#endif

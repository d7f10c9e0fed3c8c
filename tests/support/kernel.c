#define HK_TEST_KERNEL
#include "kernel.h"

#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

static size_t page(void)
{
    const char *text = getenv("KERNEL_PAGE");
    return text ? (size_t)strtoul(text, NULL, 10) : 4096;
}

static bool plain(void)
{
    return getenv("KERNEL_PLAIN") != NULL;
}

/* As with RLIMIT_AS=KERNEL_SPACE: what is mapped counts. */
static _Atomic size_t mapped;

/* As with vm.overcommit_memory=2: what may be written to counts, MAP_NORESERVE or not, touched or not, until
 * it is mapped anew; no more than KERNEL_COMMIT. */
static struct {
    uintptr_t from, to;
} counted[1 << 16];
static size_t ranges, counted_bytes;
static pthread_mutex_t counting = PTHREAD_MUTEX_INITIALIZER;

static size_t limit(const char *name)
{
    const char *text = getenv(name);
    return text ? (size_t)strtoull(text, NULL, 10) : SIZE_MAX;
}

static bool refuse(void)
{
    errno = ENOMEM;
    return false;
}

static bool map_more(size_t n)
{
    if (atomic_fetch_add(&mapped, n) + n <= limit("KERNEL_SPACE")) return true;
    atomic_fetch_sub(&mapped, n);
    return refuse();
}

static void add(uintptr_t from, uintptr_t to)
{
    if (from >= to) return;
    if (ranges == sizeof counted / sizeof *counted) abort();
    counted[ranges].from = from;
    counted[ranges++].to = to;
    counted_bytes += to - from;
}

static void drop(uintptr_t from, uintptr_t to)
{
    for (size_t i = ranges; i-- > 0;) {
        uintptr_t a = counted[i].from, b = counted[i].to;
        if (b <= from || a >= to) continue;
        counted_bytes -= b - a;
        counted[i] = counted[--ranges];
        add(a, from);
        add(to, b);
    }
}

static size_t overlap(uintptr_t from, uintptr_t to)
{
    size_t n = 0;
    for (size_t i = 0; i < ranges; i++) {
        uintptr_t a = counted[i].from > from ? counted[i].from : from,
                  b = counted[i].to < to ? counted[i].to : to;
        if (a < b) n += b - a;
    }
    return n;
}

/* From now on the range counts, or no longer. */
static bool count(const void *p, size_t n, bool on)
{
    uintptr_t from = (uintptr_t)p, to = from + n;
    size_t most = limit("KERNEL_COMMIT");
    if (most == SIZE_MAX) return true;
    pthread_mutex_lock(&counting);
    bool ok = !on || counted_bytes + n - overlap(from, to) <= most;
    if (ok) drop(from, to);
    if (ok && on) add(from, to);
    pthread_mutex_unlock(&counting);
    return ok || refuse();
}

static size_t whole(size_t n)
{
    return (n + page() - 1) & ~(page() - 1);
}

static bool within(const void *p)
{
    if (!((uintptr_t)p & (page() - 1))) return false;
    errno = EINVAL;
    return true;
}

int kernel_getpagesize(void)
{
    return (int)page();
}

void *kernel_mmap(void *hint, size_t n, int protection, int flags, int file, long offset)
{
    n = whole(n);
    if (!(flags & MAP_FIXED) && !map_more(n)) return MAP_FAILED;
    if (page() == 4096) {
        void *at = mmap(hint, n, protection, flags, file, offset);
        if (at == MAP_FAILED || count(at, n, protection & PROT_WRITE)) return at;
        kernel_munmap(at, n);
        return refuse(), MAP_FAILED;
    }
    char *p = mmap(hint, n, protection, flags, file, offset);
    if (p == MAP_FAILED || !((uintptr_t)p & (page() - 1))) return p;
    munmap(p, n);
    p = mmap(hint, n + page(), protection, flags, file, offset);
    if (p == MAP_FAILED) return p;
    char *start = (char *)whole((uintptr_t)p);
    if (start > p) munmap(p, (size_t)(start - p));
    munmap(start + n, (size_t)(p + page() - start));
    return start;
}

int kernel_munmap(void *p, size_t n)
{
    if (within(p)) return -1;
    atomic_fetch_sub(&mapped, whole(n));
    count(p, whole(n), false);
    return munmap(p, whole(n));
}

int kernel_mprotect(void *p, size_t n, int protection)
{
    if (within(p)) return -1;
    if (protection & PROT_WRITE && !count(p, whole(n), true)) return -1;
    return mprotect(p, whole(n), protection);
}

int kernel_madvise(void *p, size_t n, int advice)
{
    if (within(p)) return -1;
    if (plain() && (advice == MADV_POPULATE_WRITE || advice == MADV_HUGEPAGE)) {
        errno = EINVAL;
        return -1;
    }
    return madvise(p, whole(n), advice);
}

void *kernel_mremap(void *p, size_t old_n, size_t n, int flags, ...)
{
    if (within(p)) return MAP_FAILED;
    if (plain()) {
        errno = ENOSYS;
        return MAP_FAILED;
    }
    old_n = whole(old_n);
    n = whole(n);
    if (flags & MREMAP_FIXED) {
        va_list arguments;
        va_start(arguments, flags);
        void *target = va_arg(arguments, void *);
        va_end(arguments);
        if (within(target)) return MAP_FAILED;
        if (!count(target, n, true)) return MAP_FAILED;
        count(p, old_n, false);
        atomic_fetch_sub(&mapped, old_n);
        return mremap(p, old_n, n, flags, target);
    }
    if (n > old_n && !map_more(n - old_n)) return MAP_FAILED;
    void *q = mremap(p, old_n, n, 0);
    if (q != MAP_FAILED && !count(p, n, true)) {
        mremap(p, n, old_n, 0);
        q = MAP_FAILED;
        flags = 0;
    } else if (q != MAP_FAILED && n < old_n) {
        atomic_fetch_sub(&mapped, old_n - n);
        count((char *)p + n, old_n - n, false);
    }
    if (q == MAP_FAILED && n > old_n) atomic_fetch_sub(&mapped, n - old_n);
    if (q != MAP_FAILED || !(flags & MREMAP_MAYMOVE)) return q;
    void *target = kernel_mmap(NULL, n, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (target == MAP_FAILED) return MAP_FAILED;
    q = kernel_mremap(p, old_n, n, MREMAP_MAYMOVE | MREMAP_FIXED, target);
    if (q == MAP_FAILED) kernel_munmap(target, n);
    return q;
}

#define HK_TEST_KERNEL
#include "kernel.h"

#include <errno.h>
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

/* As with vm.overcommit_memory=2: private mappings that can be written to are counted whole, MAP_NORESERVE or not. */
static _Atomic size_t committed;

static bool commit(size_t n)
{
    const char *text = getenv("KERNEL_COMMIT");
    if (!text || atomic_fetch_add(&committed, n) + n <= (size_t)strtoull(text, NULL, 10)) return true;
    atomic_fetch_sub(&committed, n);
    errno = ENOMEM;
    return false;
}

static void uncommit(size_t n)
{
    if (getenv("KERNEL_COMMIT")) atomic_fetch_sub(&committed, n);
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
    if (!commit(n)) return MAP_FAILED;
    if (page() == 4096) return mmap(hint, n, protection, flags, file, offset);
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
    uncommit(whole(n));
    return munmap(p, whole(n));
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
        uncommit(old_n);
        return mremap(p, old_n, n, flags, target);
    }
    if (n > old_n && !commit(n - old_n)) return MAP_FAILED;
    if (n < old_n) uncommit(old_n - n);
    void *q = mremap(p, old_n, n, 0);
    if (q != MAP_FAILED) return q;
    if (n > old_n) uncommit(n - old_n);
    if (!(flags & MREMAP_MAYMOVE)) return q;
    void *target = kernel_mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (target == MAP_FAILED) return MAP_FAILED;
    uncommit(old_n);
    q = mremap(p, old_n, n, MREMAP_MAYMOVE | MREMAP_FIXED, target);
    if (q == MAP_FAILED) munmap(target, n);
    return q;
}

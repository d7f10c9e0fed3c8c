/* What jemalloc has beside malloc, for programs that are linked with it: their blocks go to and fro between
 * both kinds of functions. There is one arena, and no cache that a program may make: who makes one gets a
 * number that means nothing. */
#include "mallctl.h"
#include "report.h"

#include <errno.h>
#include <malloc.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { LG_ALIGN = 63, ZERO = 64, ALIGNED = 16 };

static size_t align_of(int flags)
{
    return (size_t)1 << (flags & LG_ALIGN);
}

void *mallocx(size_t n, int flags);
void *mallocx(size_t n, int flags)
{
    const size_t align = align_of(flags);
    if (align <= ALIGNED) return flags & ZERO ? calloc(1, n) : malloc(n);
    void *p = aligned_alloc(align, n);
    if (p && flags & ZERO) memset(p, 0, malloc_usable_size(p));
    return p;
}

static void *move(void *p, size_t old, size_t align, size_t n)
{
    void *to = aligned_alloc(align, n);
    if (!to) return NULL;
    memcpy(to, p, old < n ? old : n);
    free(p);
    return to;
}

void *rallocx(void *p, size_t n, int flags);
void *rallocx(void *p, size_t n, int flags)
{
    const size_t align = align_of(flags), old = malloc_usable_size(p);
    void *to = align <= ALIGNED ? realloc(p, n > 0 ? n : 1) : move(p, old, align, n);
    if (!to || !(flags & ZERO)) return to;
    const size_t now = malloc_usable_size(to);
    if (now > old) memset((char *)to + old, 0, now - old);
    return to;
}

/* The block stays as it is, which is one of the answers that there may be. */
size_t xallocx(void *p, size_t n, size_t extra, int flags);
size_t xallocx(void *p, size_t n, size_t extra, int flags)
{
    (void)n;
    (void)extra;
    (void)flags;
    return malloc_usable_size(p);
}

size_t sallocx(const void *p, int flags);
size_t sallocx(const void *p, int flags)
{
    (void)flags;
    return malloc_usable_size((void *)(uintptr_t)p);
}

void dallocx(void *p, int flags);
void dallocx(void *p, int flags)
{
    (void)flags;
    free(p);
}

void sdallocx(void *p, size_t n, int flags);
void sdallocx(void *p, size_t n, int flags)
{
    (void)n;
    (void)flags;
    free(p);
}

size_t nallocx(size_t n, int flags);
size_t nallocx(size_t n, int flags)
{
    (void)flags;
    return hks_mallctl_good_size(n);
}

int mallctl(const char *name, void *old, size_t *old_size, void *new, size_t new_size);
int mallctl(const char *name, void *old, size_t *old_size, void *new, size_t new_size)
{
    size_t mib[HKS_MALLCTL_PARTS], parts = HKS_MALLCTL_PARTS;
    const int error = hks_mallctl_find(name, mib, &parts);
    return error ? error : hks_mallctl(mib, parts, old, old_size, new, new_size);
}

int mallctlnametomib(const char *name, size_t *mib, size_t *parts);
int mallctlnametomib(const char *name, size_t *mib, size_t *parts)
{
    return hks_mallctl_find(name, mib, parts);
}

int mallctlbymib(const size_t *mib, size_t parts, void *old, size_t *old_size, void *new, size_t new_size);
int mallctlbymib(const size_t *mib, size_t parts, void *old, size_t *old_size, void *new, size_t new_size)
{
    return hks_mallctl(mib, parts, old, old_size, new, new_size);
}

typedef void print_fn(void *to, const char *text);

void malloc_stats_print(print_fn *print, void *to, const char *options);
void malloc_stats_print(print_fn *print, void *to, const char *options)
{
    (void)options;
    hks_report_print(print, to);
}

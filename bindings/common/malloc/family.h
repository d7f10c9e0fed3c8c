/* The malloc family as glibc has it, over a heap whose blocks are all 16-aligned. Who includes this has
 * defined before, as static functions that set errno where they return NULL:
 *
 *   hkc_malloc(n)          hkc_calloc(n)          a block, one that is zero
 *   hkc_resize(p, n)       p is not NULL, n not 0
 *   hkc_aligned(align, n)  align: a power of two; errno may be anything
 *   hkc_free(p)            keeps errno; p may be NULL
 *   hkc_usable(p)          bytes that the program may use; 0 = not ours
 *   hkc_trim()             bytes that went back to the system */
#ifndef HKC_MALLOC_FAMILY_H
#define HKC_MALLOC_FAMILY_H

#include <errno.h>
#include <malloc.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

enum { HKC_PAGE = 4096 };

static __attribute__((cold, noinline)) void *hkc_no_memory(void)
{
    errno = ENOMEM;
    return NULL;
}

void *malloc(size_t n)
{
    return hkc_malloc(n);
}

void free(void *p)
{
    hkc_free(p);
}

/* Of libcs before glibc 2.26; programs built then may still look for it. */
void cfree(void *p);
void cfree(void *p)
{
    free(p);
}

/* Of C23. The heap knows size and alignment. */
void free_sized(void *p, size_t n);
void free_sized(void *p, size_t n)
{
    (void)n;
    free(p);
}

void free_aligned_sized(void *p, size_t align, size_t n);
void free_aligned_sized(void *p, size_t align, size_t n)
{
    (void)align;
    (void)n;
    free(p);
}

void *calloc(size_t count, size_t n)
{
    size_t total;
    if (__builtin_mul_overflow(count, n, &total)) return hkc_no_memory();
    return hkc_calloc(total);
}

void *realloc(void *p, size_t n)
{
    if (!p) return hkc_malloc(n);
    if (n == 0) {
        hkc_free(p);
        return NULL;
    }
    return hkc_resize(p, n);
}

void *reallocarray(void *p, size_t count, size_t n)
{
    size_t total;
    if (__builtin_mul_overflow(count, n, &total)) return hkc_no_memory();
    return realloc(p, total);
}

static inline int hkc_is_power_of_two(size_t n)
{
    return n != 0 && (n & (n - 1)) == 0;
}

static void *hkc_aligned_checked(size_t align, size_t n)
{
    int saved = errno;
    void *p = hkc_aligned(align, n);
    errno = saved;
    return p ? p : hkc_no_memory();
}

/* glibc sets errno, too, where the memory is missing, and programs read it. */
int posix_memalign(void **out, size_t align, size_t n)
{
    if (!hkc_is_power_of_two(align) || align % sizeof(void *) != 0) return EINVAL;
    void *p = hkc_aligned_checked(align, n);
    if (!p) return ENOMEM;
    *out = p;
    return 0;
}

void *aligned_alloc(size_t align, size_t n)
{
    if (!hkc_is_power_of_two(align)) {
        errno = EINVAL;
        return NULL;
    }
    return hkc_aligned_checked(align, n);
}

/* glibc takes the next power of two. */
void *memalign(size_t align, size_t n)
{
    if (align > SIZE_MAX / 2 + 1) {
        errno = EINVAL;
        return NULL;
    }
    size_t power = 1;
    while (power < align)
        power *= 2;
    return hkc_aligned_checked(power, n);
}

void *valloc(size_t n)
{
    return memalign(HKC_PAGE, n);
}

void *pvalloc(size_t n)
{
    if (n > SIZE_MAX - HKC_PAGE) return hkc_no_memory();
    return memalign(HKC_PAGE, n == 0 ? HKC_PAGE : (n + HKC_PAGE - 1) & ~(size_t)(HKC_PAGE - 1));
}

size_t malloc_usable_size(void *p)
{
    return hkc_usable(p);
}

int malloc_trim(size_t pad)
{
    (void)pad;
    return hkc_trim() > 0;
}

#endif

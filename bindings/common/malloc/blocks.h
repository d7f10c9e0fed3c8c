/* The functions of the malloc family that give blocks, over those that family.h asks for. Who includes this
 * has defined
 *
 *   HKC_FUNCTION(name)   the name of such a function
 *   HKC_TOKEN            what is behind its parameters, and HKC_PASS behind the arguments of what it calls:
 *                        nothing, or a token with a comma before it */
#ifndef HKC_MALLOC_BLOCKS_H
#define HKC_MALLOC_BLOCKS_H

#include "common/malloc/no_memory.h"

#include <errno.h>
#include <malloc.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

enum { HKC_PAGE = 4096 };

static inline int hkc_is_power_of_two(size_t n)
{
    return n != 0 && (n & (n - 1)) == 0;
}

void *HKC_FUNCTION(malloc)(size_t n HKC_TOKEN)
{
    return hkc_malloc(n HKC_PASS);
}

void *HKC_FUNCTION(calloc)(size_t count, size_t n HKC_TOKEN)
{
    size_t total;
    if (__builtin_mul_overflow(count, n, &total)) return hkc_no_memory();
    return hkc_calloc(total HKC_PASS);
}

void *HKC_FUNCTION(realloc)(void *p, size_t n HKC_TOKEN)
{
    if (!p) return hkc_malloc(n HKC_PASS);
    if (n == 0) {
        hkc_free(p);
        return NULL;
    }
    return hkc_resize(p, n HKC_PASS);
}

void *HKC_FUNCTION(reallocarray)(void *p, size_t count, size_t n HKC_TOKEN)
{
    size_t total;
    if (__builtin_mul_overflow(count, n, &total)) return hkc_no_memory();
    return HKC_FUNCTION(realloc)(p, total HKC_PASS);
}

static void *hkc_aligned_checked(size_t align, size_t n HKC_TOKEN)
{
    int saved = errno;
    void *p = hkc_aligned(align, n HKC_PASS);
    errno = saved;
    return p ? p : hkc_no_memory();
}

/* glibc sets errno, too, where the memory is missing, and programs read it. */
int HKC_FUNCTION(posix_memalign)(void **out, size_t align, size_t n HKC_TOKEN)
{
    if (!hkc_is_power_of_two(align) || align % sizeof(void *) != 0) return EINVAL;
    void *p = hkc_aligned_checked(align, n HKC_PASS);
    if (!p) return ENOMEM;
    *out = p;
    return 0;
}

void *HKC_FUNCTION(aligned_alloc)(size_t align, size_t n HKC_TOKEN)
{
    if (!hkc_is_power_of_two(align)) {
        errno = EINVAL;
        return NULL;
    }
    return hkc_aligned_checked(align, n HKC_PASS);
}

/* glibc takes the next power of two. */
void *HKC_FUNCTION(memalign)(size_t align, size_t n HKC_TOKEN)
{
    if (align > SIZE_MAX / 2 + 1) {
        errno = EINVAL;
        return NULL;
    }
    size_t power = 1;
    while (power < align)
        power *= 2;
    return hkc_aligned_checked(power, n HKC_PASS);
}

void *HKC_FUNCTION(valloc)(size_t n HKC_TOKEN)
{
    return HKC_FUNCTION(memalign)(HKC_PAGE, n HKC_PASS);
}

void *HKC_FUNCTION(pvalloc)(size_t n HKC_TOKEN)
{
    if (n > SIZE_MAX - HKC_PAGE) return hkc_no_memory();
    const size_t pages = n == 0 ? HKC_PAGE : (n + HKC_PAGE - 1) & ~(size_t)(HKC_PAGE - 1);
    return HKC_FUNCTION(memalign)(HKC_PAGE, pages HKC_PASS);
}

#endif

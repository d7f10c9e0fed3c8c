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

#define HKC_FUNCTION(name) name
#define HKC_TOKEN
#define HKC_PASS
#include "common/malloc/blocks.h"

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

/* libhakmem_pymalloc.so: stands before libc's malloc, for `python -m hakmem run --malloc`, and passes all on
 * to the hook, which has the heap. The calls are jumps, so that the hook sees the stack of who called. */
#include "heap/heap.h"
#include "paths/process.h"

static inline void *hkc_malloc(size_t n)
{
    return hkp_process_now->malloc(n);
}

static inline void *hkc_calloc(size_t n)
{
    return hkp_process_now->calloc(n);
}

static inline void *hkc_resize(void *p, size_t n)
{
    return hkp_process_now->realloc(p, n);
}

static inline void *hkc_aligned(size_t align, size_t n)
{
    return hkp_process_now->aligned_alloc(align, n);
}

static inline void hkc_free(void *p)
{
    hkp_process_now->free(p);
}

static inline size_t hkc_usable(void *p)
{
    return hkp_process_now->usable_size(p);
}

static inline size_t hkc_trim(void)
{
    return hkp_trim();
}

#include "common/malloc/family.h"

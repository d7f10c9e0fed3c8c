/* The malloc family over hks_heap(). Pointers that are not hakmem's (of ld.so, from before) are ignored. */
#include "aside.h"
#include "common/malloc/no_memory.h"
#include "heap.h"
#include "refused.h"

#include <hakmem/inline.h>

/* Where there is no heap: out of memory, or a sanitizer serves. */
static __attribute__((cold, noinline)) void *malloc_without(size_t n)
{
    return hks_aside() ? hks_aside_malloc(n) : hkc_no_memory();
}

static __attribute__((cold, noinline)) void *calloc_without(size_t n)
{
    return hks_aside() ? hks_aside_calloc(n) : hkc_no_memory();
}

static __attribute__((cold, noinline)) void *resize_without(void *p, size_t n)
{
    return hks_aside() ? hks_aside_realloc(p, n) : hkc_no_memory();
}

static __attribute__((cold, noinline)) void *aligned_without(size_t align, size_t n)
{
    return hks_aside() ? hks_aside_aligned(align, n) : hkc_no_memory();
}

static __attribute__((cold, noinline)) void free_without(void *p)
{
    if (hks_aside()) hks_aside_free(p);
}

static __attribute__((cold, noinline)) size_t usable_without(void *p)
{
    return hks_aside() ? hks_aside_usable(p) : 0;
}

static __attribute__((noinline)) void *malloc_slow(size_t n)
{
    hak_ctx *heap = hks_heap();
    return !heap ? malloc_without(n) : hks_checked(hak_alloc(heap, n), NULL, 0, n, false, 0);
}

static inline void *hkc_malloc(size_t n)
{
    hak_ctx *heap = hks_thread_heap;
    if (HKS_UNLIKELY(!heap)) return malloc_slow(n);
    return hks_checked(hak_alloc_inline(heap, n, 0), NULL, 0, n, false, 0);
}

static inline void *hkc_calloc(size_t n)
{
    hak_ctx *heap = hks_heap();
    if (HKS_UNLIKELY(!heap)) return calloc_without(n);
    return hks_checked(hak_calloc(heap, 1, n), NULL, 0, n, true, 0);
}

static inline void *hkc_resize(void *p, size_t n)
{
    hak_ctx *heap = hks_heap();
    if (HKS_UNLIKELY(!heap)) return resize_without(p, n);
    return hks_checked(hak_realloc(heap, p, n), p, 0, n, false, 0);
}

static inline void *hkc_aligned(size_t align, size_t n)
{
    hak_ctx *heap = hks_heap();
    if (!heap) return aligned_without(align, n);
    return hks_checked(hak_aligned_alloc(heap, align, n), NULL, align, n, false, 0);
}

static __attribute__((noinline)) void free_slow(void *p)
{
    hak_ctx *heap = hks_heap();
    if (heap) hak_free(heap, p);
    else free_without(p);
}

static inline void hkc_free(void *p)
{
    hak_ctx *heap = hks_thread_heap;
    if (HKS_LIKELY(heap)) hak_free_inline(heap, p);
    else free_slow(p);
}

static inline size_t hkc_usable(void *p)
{
    hak_ctx *heap = hks_heap();
    if (!heap) return usable_without(p);
    return hks_heap_patterns ? hak_usable_size(heap, p) : hak_block_size(heap, p);
}

static inline size_t hkc_trim(void)
{
    hak_ctx *heap = hks_heap_shared();
    return heap ? hak_ctx_trim(heap) : 0;
}

#include "common/malloc/family.h"

/* mimalloc's interface as far as its own tests call it, on contexts of one space: its default heap is a
 * shared context, each further heap a local one. Every free goes by hak_space_free, which finds the
 * context. */
#ifndef TESTS_CORE_SUITES_MIMALLOC_H
#define TESTS_CORE_SUITES_MIMALLOC_H

#include <hakmem/hakmem.h>

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

typedef hak_ctx mi_heap_t;

static hak_space *suite_space;
static hak_ctx *suite_ctx;

__attribute__((constructor)) static void suite_begin(void)
{
    hak_options options = HAK_OPTIONS_INIT;
    options.shared = true;
    options.debug = HAK_DEBUG_CHECK;
    suite_space = hak_space_new(NULL);
    suite_ctx = suite_space ? hak_ctx_new(suite_space, &options) : NULL;
    if (!suite_ctx) abort();
}

/* At the end nothing is live, and the heap is sound. */
__attribute__((destructor)) static void suite_end(void)
{
    hak_stats stats;
    stats.size = sizeof stats;
    hak_ctx_flush(suite_ctx);
    if (!hak_ctx_check(suite_ctx, NULL, NULL) || hak_ctx_stats(suite_ctx, &stats) != 0 ||
        stats.live_blocks != 0) {
        fprintf(stderr, "FAILED: %zu blocks are live at the end, or the heap is broken\n", stats.live_blocks);
        _Exit(99);
    }
    hak_ctx_destroy(suite_ctx);
    hak_space_delete(suite_space);
}

static inline void *mi_malloc(size_t n)
{
    return hak_alloc(suite_ctx, n);
}
static inline void *mi_calloc(size_t count, size_t n)
{
    return hak_calloc(suite_ctx, count, n);
}
static inline void *mi_realloc(void *p, size_t n)
{
    return hak_realloc(suite_ctx, p, n);
}
static inline void *mi_reallocarray(void *p, size_t count, size_t n)
{
    return n && count > SIZE_MAX / n ? NULL : mi_realloc(p, count * n);
}
static inline void mi_free(void *p)
{
    if (p) hak_space_free(suite_space, p);
}
static inline size_t mi_usable_size(const void *p)
{
    return hak_usable_size(suite_ctx, p);
}
static inline void *mi_malloc_aligned(size_t n, size_t align)
{
    return hak_aligned_alloc(suite_ctx, align, n);
}
static inline void *mi_zalloc_aligned(size_t n, size_t align)
{
    return hak_aligned_calloc(suite_ctx, align, 1, n);
}
/* hakmem aligns the block itself only: with an offset the test has to fail. */
static inline void *mi_malloc_aligned_at(size_t n, size_t align, size_t offset)
{
    (void)offset;
    return mi_malloc_aligned(n, align);
}
static inline void *mi_memalign(size_t align, size_t n)
{
    return mi_malloc_aligned(n, align);
}
static inline int mi_posix_memalign(void **p, size_t align, size_t n)
{
    if (align < sizeof(void *) || (align & (align - 1))) return EINVAL;
    void *q = mi_malloc_aligned(n, align);
    if (!q) return ENOMEM;
    *p = q;
    return 0;
}

static inline mi_heap_t *mi_heap_new(void)
{
    return hak_ctx_new(suite_space, NULL);
}
static inline void mi_heap_destroy(mi_heap_t *heap)
{
    hak_ctx_destroy(heap);
}
/* Its blocks live on until they are freed. */
static inline void mi_heap_delete(mi_heap_t *heap)
{
    hak_ctx_retire(heap);
}
static inline void *mi_heap_malloc_aligned(mi_heap_t *heap, size_t n, size_t align)
{
    return hak_aligned_alloc(heap, align, n);
}
static inline bool mi_heap_contains_block(const mi_heap_t *heap, const void *p)
{
    return hak_owns(heap, p);
}
#define mi_heap_malloc_tp(heap, type) ((type *)hak_alloc(heap, sizeof(type)))

/* What prints, reads options or has nothing to do with memory. */
#define mi_realpath realpath_of
static inline char *realpath_of(const char *path, char *unused)
{
    (void)path;
    (void)unused;
    return (char *)mi_calloc(1, 1);
}
#define mi_option_disable(option) ((void)0)
#define mi_stats_print(out) ((void)0)
#define mi_stats_reset() ((void)0)
static inline void mi_collect(bool force)
{
    if (force) hak_ctx_trim(suite_ctx);
    else hak_ctx_flush(suite_ctx);
}

#endif

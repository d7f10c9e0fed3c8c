/* hakmem. Variants: BENCH_SIZED frees with the size, BENCH_LABELLED gives 12 labels, BENCH_DEBUG checks
 * every free, BENCH_INLINE uses hakmem/inline.h, BENCH_FAST has the mode fast. BENCH_SHARED is one context
 * for all threads; with BENCH_TLS each thread uses its own heap in it, by a thread-local variable. A row has
 * one context; contexts that it makes itself share the space. */
#ifndef BENCH_ADAPTER_HAK_H
#define BENCH_ADAPTER_HAK_H

#include "label.h"

#include <hakmem/hakmem.h>
#include <hakmem/inline.h>

#define BA_HAS_CTX 1
#define BA_HAS_BUFFER 1

extern hak_space *bench_space;
extern hak_ctx *bench_ctx;
#ifdef BENCH_TLS
extern _Thread_local hak_ctx *bench_heap;
#else
#define bench_heap bench_ctx
#endif
/* buffer NULL = pages of the OS. */
void bench_hak_init(void *buffer, size_t size);
hak_ctx *bench_hak_ctx(void);
/* Defines the 12 labels one by one. */
void bench_hak_define(hak_ctx *c);

static inline const char *ba_version(void)
{
    return hak_version();
}
static inline void ba_init(void)
{
    bench_hak_init(NULL, 0);
}
static inline void ba_init_buffer(void *buffer, size_t size)
{
    bench_hak_init(buffer, size);
}

static inline void ba_thread_begin(size_t lane)
{
    (void)lane;
#ifdef BENCH_TLS
    bench_heap = hak_ctx_thread(bench_ctx);
#endif
}
static inline void ba_thread_end(void)
{
    hak_ctx_thread_done(bench_ctx);
}

typedef hak_ctx ba_ctx;
static inline ba_ctx *ba_ctx_new(void)
{
    return bench_hak_ctx();
}
/* Labels are numbered from 1 in the order of hak_options.labels. */
static inline void *ba_ctx_alloc(ba_ctx *c, size_t n)
{
#ifdef BENCH_LABELLED
    return hak_alloc_cs(c, n, (hak_label)(1 + label_index(n)), 0);
#elif defined(BENCH_INLINE)
    return hak_alloc_inline(c, n, 0);
#else
    return hak_alloc(c, n);
#endif
}
static inline void ba_ctx_destroy(ba_ctx *c)
{
    hak_ctx_destroy(c);
}
#define BA_CTX_DEFINE 1
static inline void ba_ctx_define(ba_ctx *c)
{
    bench_hak_define(c);
}
static inline void *ba_ctx_alloc_defined(ba_ctx *c, size_t n)
{
    return hak_alloc_cs(c, n, (hak_label)(1 + label_index(n)), 0);
}
#define BA_CTX_FREE 1
static inline void ba_ctx_free(ba_ctx *c, void *p)
{
    hak_free(c, p);
}

static inline void *ba_alloc(size_t n)
{
    return ba_ctx_alloc(bench_heap, n);
}
static inline void ba_free(void *p, size_t n)
{
#ifdef BENCH_SIZED
    hak_free_sized(bench_heap, p, n);
#elif defined(BENCH_INLINE)
    (void)n;
    hak_free_inline(bench_heap, p);
#else
    (void)n;
    hak_free(bench_heap, p);
#endif
}
static inline void *ba_realloc(void *p, size_t old, size_t n)
{
#ifdef BENCH_SIZED
    return hak_realloc_sized(bench_heap, p, old, n);
#else
    (void)old;
    return hak_realloc(bench_heap, p, n);
#endif
}
static inline void ba_trim(void)
{
    hak_ctx_trim(bench_ctx);
}
static inline void ba_tick(void)
{
    hak_ctx_tick(bench_ctx, 0);
}

#endif

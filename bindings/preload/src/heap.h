/* The one context of the process: made by the first allocation, a heap of it for each thread, fork, the end
 * of threads. */
#ifndef HKS_PRELOAD_HEAP_H
#define HKS_PRELOAD_HEAP_H

#include <hakmem/hakmem.h>

#define HKS_LIKELY(x) __builtin_expect(!!(x), 1)
#define HKS_UNLIKELY(x) __builtin_expect(!!(x), 0)

/* This thread's heap; NULL before its first call and after its end. Always in the initial set of libraries,
 * so that the cheapest form of thread-local storage serves. */
extern _Thread_local hak_ctx *hks_thread_heap
    __attribute__((tls_model("initial-exec"), visibility("hidden")));

/* What is behind the bytes that were asked for is not the program's: a pattern lies there. */
extern bool hks_heap_patterns __attribute__((visibility("hidden")));

/* A heap for a thread that has none; NULL = no memory at all. */
hak_ctx *hks_heap_of_thread(void);

static inline hak_ctx *hks_heap(void)
{
    hak_ctx *heap = hks_thread_heap;
    return HKS_LIKELY(heap) ? heap : hks_heap_of_thread();
}

/* The shared context, made if need be; NULL = no memory at all. */
hak_ctx *hks_heap_shared(void);

#endif

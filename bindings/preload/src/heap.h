/* The one context of the process: made by the first allocation, a heap of it for each thread, fork, the end
 * of threads. */
#ifndef HK_PRELOAD_HEAP_H
#define HK_PRELOAD_HEAP_H

#include <hakmem/hakmem.h>

#define HK_LIKELY(x) __builtin_expect(!!(x), 1)
#define HK_UNLIKELY(x) __builtin_expect(!!(x), 0)

/* This thread's heap; NULL before its first call and after its end. Always in the initial set of libraries,
 * so that the cheapest form of thread-local storage serves. */
extern _Thread_local hak_ctx *hk_thread_heap __attribute__((tls_model("initial-exec"), visibility("hidden")));

/* A heap for a thread that has none; NULL = no memory at all. */
hak_ctx *hk_heap_of_thread(void);

static inline hak_ctx *hk_heap(void)
{
    hak_ctx *heap = hk_thread_heap;
    return HK_LIKELY(heap != NULL) ? heap : hk_heap_of_thread();
}

/* The shared context, made if need be; NULL = no memory at all. */
hak_ctx *hk_heap_shared(void);

/* Shown in reports; settings.c fills it in after the context exists. */
enum { HK_NAME_SIZE = 64 };
extern char hk_heap_name[HK_NAME_SIZE];

/* Threads that allocated: so far, and now. */
size_t hk_heap_threads(void);
size_t hk_heap_threads_now(void);

#endif

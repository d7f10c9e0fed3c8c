/* The context of the process as those see it who report: heap.c makes it, and counts its threads. */
#ifndef HKS_PRELOAD_CONTEXT_H
#define HKS_PRELOAD_CONTEXT_H

#include <hakmem/hakmem.h>

#include <stdatomic.h>

typedef struct hks_context {
    _Atomic(hak_ctx *) made;             /* NULL before the first allocation */
    atomic_size_t threads, threads_gone; /* that allocated; of these, those that ended */
    char name[64];                       /* shown in reports; setup.c fills it in after the context exists */
} hks_context;
extern hks_context hks_process __attribute__((visibility("hidden")));

/* Returns the shared context; NULL = nothing was allocated yet, or there was no memory. */
static inline hak_ctx *hks_context_made(void)
{
    return atomic_load_explicit(&hks_process.made, memory_order_acquire);
}

#endif

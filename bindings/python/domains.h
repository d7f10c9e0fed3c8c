/* Live blocks of the domains while blocks have no labels: each thread counts those that it makes and frees,
 * so that one thread's counts may be below zero. OBJ, by far the most, is not counted: it is the rest. */
#ifndef HK_PY_DOMAINS_H
#define HK_PY_DOMAINS_H

#include "heap.h"

typedef struct hk_py_amount {
    size_t bytes, blocks;
} hk_py_amount;

typedef struct hk_py_counts {
    struct {
        uint32_t kinds[HAK_INLINE_BINS]; /* blocks of the thread's own heap, by their kind */
        hk_py_amount others;
    } of[HK_PY_DOMAINS];
    struct hk_py_counts *next;
    bool taken; /* by a thread */
} hk_py_counts;

/* Those of this thread, once it has a heap. */
extern _Thread_local hk_py_counts *hk_py_counted __attribute__((tls_model("initial-exec")));

void hk_py_counts_take(void);
/* The thread ends: its counts go on with another one. */
void hk_py_counts_leave(void);
/* In the child after a fork: all other threads ended. */
void hk_py_counts_in_child(void);
/* Over all threads. Exact when no other thread is inside a call; never below zero. */
HK_PY_API hk_py_amount hk_py_counts_sum(hk_py_domain domain);

/* One more block of the heap, or one less (-1). */
HK_PY_INLINE void hk_py_count_kind(hk_py_domain domain, uint32_t kind, int by)
{
    hk_py_counted->of[domain].kinds[kind] += (uint32_t)by;
}

/* The same for any block. */
HK_PY_INLINE void hk_py_count(hak_ctx *heap, hk_py_domain domain, const void *p, int by)
{
    uint32_t kind = hak_inline_kind(heap, p);
    if (HK_PY_LIKELY(kind < HAK_INLINE_BINS)) {
        hk_py_count_kind(domain, kind, by);
        return;
    }
    hk_py_amount *others = &hk_py_counted->of[domain].others;
    others->bytes += (size_t)by * hak_usable_size(heap, p);
    others->blocks += (size_t)by;
}

#endif

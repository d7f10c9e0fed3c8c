/* An MPSC stack: any thread pushes, and one thread takes the whole stack. This is Treiber's push without a
 * pop, so there is no ABA. The operations on the head are macros, so that a test can replace them and run
 * through all interleavings (tests/core/mpsc_schedules.c). */
#ifndef HK_MPSC_H
#define HK_MPSC_H

#include <stddef.h>

typedef struct hk_link {
    struct hk_link *next;
} hk_link;

#ifndef HK_MPSC_LOAD
#include <stdatomic.h>
typedef _Atomic(hk_link *) hk_mpsc;
#define HK_MPSC_LOAD(stack) atomic_load_explicit(stack, memory_order_relaxed)
#define HK_MPSC_SWAP_IF(stack, seen, link)                                                                   \
    atomic_compare_exchange_weak_explicit(stack, seen, link, memory_order_release, memory_order_relaxed)
#define HK_MPSC_SWAP(stack, link) atomic_exchange_explicit(stack, link, memory_order_acquire)
#endif

static inline void hk_mpsc_push(hk_mpsc *stack, hk_link *link)
{
    hk_link *seen = HK_MPSC_LOAD(stack);
    do {
        link->next = seen;
    } while (!HK_MPSC_SWAP_IF(stack, &seen, link));
}

/* All links, the newest first. */
static inline hk_link *hk_mpsc_take(hk_mpsc *stack)
{
    return HK_MPSC_LOAD(stack) ? HK_MPSC_SWAP(stack, NULL) : NULL;
}

#endif

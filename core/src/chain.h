/* A list to which any thread pushes and which one thread takes whole: Treiber's push without a pop, so that
 * there is no ABA. The operations on the head are macros because a test puts its own in their place and runs
 * through all interleavings (tests/core/chain_schedules.c). */
#ifndef HK_CHAIN_H
#define HK_CHAIN_H

#include <stddef.h>

typedef struct hk_link {
    struct hk_link *next;
} hk_link;

#ifndef HK_CHAIN_LOAD
#include <stdatomic.h>
typedef _Atomic(hk_link *) hk_chain;
#define HK_CHAIN_LOAD(chain) atomic_load_explicit(chain, memory_order_relaxed)
#define HK_CHAIN_SWAP_IF(chain, seen, link)                                                                  \
    atomic_compare_exchange_weak_explicit(chain, seen, link, memory_order_release, memory_order_relaxed)
#define HK_CHAIN_SWAP(chain, link) atomic_exchange_explicit(chain, link, memory_order_acquire)
#endif

static inline void hk_chain_push(hk_chain *chain, hk_link *link)
{
    hk_link *seen = HK_CHAIN_LOAD(chain);
    do {
        link->next = seen;
    } while (!HK_CHAIN_SWAP_IF(chain, &seen, link));
}

/* All links, the newest first. */
static inline hk_link *hk_chain_take(hk_chain *chain)
{
    return HK_CHAIN_LOAD(chain) ? HK_CHAIN_SWAP(chain, NULL) : NULL;
}

#endif

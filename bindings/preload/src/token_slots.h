/* What a thread remembers of its allocations with tokens: the label and the bin that a token and a size had.
 * The next allocation with both takes a block of that bin, and looks up neither the label of the token nor the
 * class of the size. A bin that is no longer the one for its size has no block at hand (hakmem/inline.h), so
 * nobody need forget a slot. The table has pages of its own, from the thread's first misses until its heap
 * ends. */
#ifndef HKS_PRELOAD_TOKEN_SLOTS_H
#define HKS_PRELOAD_TOKEN_SLOTS_H

#include "heap.h"

#include <hakmem/inline.h>

#include <stdlib.h>

typedef struct hks_token_slot {
    size_t token; /* 0 = the slot is empty */
    size_t n;
    hak_inline_bin *bin;
    size_t label;
} hks_token_slot;

enum { HKS_TOKEN_SLOTS = 256 };

/* Two slots beside each other serve the same allocations: see hks_token_missed(). A thread that remembers
 * nothing has a table that nothing is found in. */
extern _Thread_local const hks_token_slot *hks_token_slots
    __attribute__((tls_model("initial-exec"), visibility("hidden")));

/* Returns the slot of an allocation. The factor takes tokens apart that are numbers in sequence, and not
 * hashes; it is one that a compiler multiplies by. Sizes that are 4 bytes apart have other slots. */
static inline const hks_token_slot *hks_token_slot_of(size_t n, size_t token)
{
    const size_t mask = (HKS_TOKEN_SLOTS - 1) * sizeof(hks_token_slot), apart = 0x1A35;
    return (const hks_token_slot *)(const void *)((const char *)hks_token_slots +
                                                  ((apart * token + 8 * n) & mask));
}

/* Forgets all, where this thread's heap ends or is not to be used for now. */
void hks_token_forget(void) __attribute__((visibility("hidden")));

/* Does what is not found in its slot, or finds nothing at hand there. */
void *hks_token_missed(size_t n, size_t token) __attribute__((visibility("hidden")));

/* Token 0 is unlabelled: this is malloc. */
static inline void *hks_token_none(size_t n)
{
    hak_ctx *heap = hks_thread_heap;
    if (HKS_LIKELY(heap) && HKS_LIKELY(n <= HAK_INLINE_MOST)) {
        hak_inline_bin *bin = hak_inline_bin_of(heap, n);
        if (hak_inline_at_hand(bin)) return hak_inline_pop(bin, 0);
    }
    return malloc(n);
}

static inline void *hks_token_malloc(size_t n, size_t token)
{
    if (HKS_UNLIKELY(token == 0)) return hks_token_none(n);
    const hks_token_slot *s = hks_token_slot_of(n, token);
    if (HKS_LIKELY(s->token == token) && HKS_LIKELY(s->n == n) && HKS_LIKELY(hak_inline_at_hand(s->bin)))
        return hak_inline_pop(s->bin, (hak_label)s->label);
    return hks_token_missed(n, token);
}

#endif

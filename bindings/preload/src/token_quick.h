/* malloc with a token, by what the thread remembers. */
#ifndef HKS_PRELOAD_TOKEN_QUICK_H
#define HKS_PRELOAD_TOKEN_QUICK_H

#include "heap.h"
#include "token_slots.h"

#include <hakmem/token.h>

#include <stdlib.h>

/* The labels of all tokens. */
extern hak_tokens hks_tokens __attribute__((visibility("hidden")));

static inline hak_label hks_token_label(hak_ctx *heap, size_t token)
{
    const int known = hak_token_known(&hks_tokens, token);
    return HKS_LIKELY(known >= 0) ? (hak_label)known : hak_token_label(&hks_tokens, heap, token);
}

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

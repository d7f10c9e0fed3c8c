#include "token_quick.h"

#include "refused.h"

hak_tokens hks_tokens;

static __attribute__((noinline)) void *malloc_slow(size_t n, size_t token)
{
    hak_ctx *heap = hks_heap();
    if (!heap) return malloc(n);
    const hak_label label = hks_token_label(heap, token);
    return hks_checked(hak_alloc_cs(heap, n, label, 0), NULL, 0, n, false, label);
}

void *hks_token_missed(size_t n, size_t token)
{
    const hks_token_slot *second = hks_token_second(hks_token_slot_of(n, token));
    if (second->token == token && second->n == n && hak_inline_at_hand(second->bin))
        return hak_inline_pop(second->bin, (hak_label)second->label);
    hak_ctx *heap = hks_thread_heap;
    if (HKS_UNLIKELY(!heap)) return malloc_slow(n, token);
    const hak_label label = hks_token_label(heap, token);
    if (n <= HAK_INLINE_MOST && label != 0)
        hks_token_remember(&(hks_token_slot){token, n, hak_inline_bin_of(heap, n), label});
    return hks_checked(hak_alloc_inline(heap, n, label), NULL, 0, n, false, label);
}

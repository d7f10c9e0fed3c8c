/* Takes the lock of a heap, and brings home what waits for whoever has it: queue, strays, settings. */
#include "shared/remote.h"
#include "shared/transfer.h"

void hk_remote_drain(hak_ctx *heap, bool own)
{
    if (HK_UNLIKELY(atomic_load_explicit(&heap->heap->strays, memory_order_relaxed))) hk_heap_strays(heap);
    for (hk_link *at = hk_mpsc_take(&heap->heap->queue), *next; at; at = next) {
        next = at->next;
        __builtin_prefetch(next, 1);
        if (!own) heap->heap->away += hk_get(&hk_batch_of(at)->bytes);
        if (!hk_transfer_put(heap, hk_batch_of(at))) hk_remote_unpack(heap, hk_batch_of(at), own);
    }
}

/* Whether there is anything to take home. */
HK_INLINE bool awaited(const hk_heap *h)
{
    return (uintptr_t)atomic_load_explicit(&h->queue, memory_order_relaxed) |
           (uintptr_t)atomic_load_explicit(&h->strays, memory_order_relaxed);
}

enum { PATIENCE_MOST = 6 };

static HK_NOINLINE void come_back(hak_ctx *heap)
{
    hk_heap_observe(heap);
    heap->heap->away = heap->heap->away_ns = 0;
    /* It was taken for dead. */
    if (!heap->heap->thread_id) hk_heap_renew(heap);
    if (heap->heap->stolen_from) {
        hk_heap_sift(heap);
        heap->heap->stolen_from = false;
        if (heap->heap->patience < PATIENCE_MOST) heap->heap->patience++;
    }
    /* May flush magazines, which are sifted by now. */
    hk_heap_settings_follow(heap);
}

HK_INLINE void lock(hak_ctx *heap, bool own)
{
    hk_heap *h = heap->heap;
    hk_lock_take(&h->lock);
    if (own && HK_UNLIKELY(h->away)) come_back(heap);
    if (HK_UNLIKELY(awaited(h))) hk_remote_drain(heap, own);
}

void hk_heap_lock(hak_ctx *heap)
{
    lock(heap, false);
}

void hk_heap_enter(hak_ctx *heap)
{
    lock(heap, true);
}

void hk_heap_walk(hak_ctx *heap, void (*fn)(hak_ctx *heap, hk_slab *s, void *user), void *user)
{
    enum { STEP = 16 };
    hk_heap *h = heap->heap;
    hk_heap_lock(heap);
    h->member.walk = heap->owned.all;
    while (h->member.walk) {
        for (unsigned i = 0; i < STEP && h->member.walk; i++) {
            hk_slab *s = hk_slab_at(heap->space, h->member.walk);
            h->member.walk = s->all_next;
            fn(heap, s, user);
        }
        hk_heap_unlock(heap);
        hk_heap_lock(heap);
    }
    hk_heap_unlock(heap);
}

void hk_walk(hak_ctx *whole, void (*fn)(hak_ctx *heap, hk_slab *s, void *user), void *user)
{
    if (!whole->heaps) {
        HK_EACH_OWNED(whole, s)
        {
            fn(whole, s, user);
        }
        return;
    }
    hk_lock_take(&whole->heaps->walk);
    for (hak_ctx *heap = hk_heaps_first(whole); heap; heap = heap->heap->next)
        hk_heap_walk(heap, fn, user);
    hk_lock_drop(&whole->heaps->walk);
}

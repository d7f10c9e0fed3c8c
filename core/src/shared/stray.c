/* Blocks that come home to the heap that has their slab: by batches, or one by one, linked through themselves
 * without further memory. */
#include "heap/batch.h"
#include "heap/block_free.h"
#include "heap/judge.h"
#include "heap/magazine.h"
#include "heap/slab.h"
#include "shared/remote.h"

static void push_stray(hak_ctx *owner, void *p)
{
    hk_mpsc_push(&owner->heap->strays, p);
}

void hk_heap_return(hak_ctx *heap, unsigned kind, void *p)
{
    /* Nothing has checked the pointers in a magazine yet. */
    if (!hk_block_size(heap, p)) {
        hk_found_wrong(heap, HK_WRONG_BLOCK, p);
        return;
    }
    hk_add(&heap->heap->out_bytes, hk_kind_size(kind));
    hk_add(&heap->heap->out_blocks, 1);
    push_stray(hk_owner(heap, p), p);
}

/* Sends the foreign blocks of a magazine home. Packed units stay where they are. */
static void sift(hak_ctx *heap, hk_bin *bin)
{
    if (bin->kind < HK_SMALL_CLASSES && hk_packed_keeps(heap, bin->kind)) return;
    void **to = hk_bin_low(bin);
    for (void **at = to; at < bin->top; at++) {
        if (hk_kind_in_window(heap, *at) == bin->kind) *to++ = *at;
        else hk_heap_return(heap, bin->kind, *at);
    }
    bin->top = to;
}

void hk_heap_sift(hak_ctx *heap)
{
    if (!heap->heap->stolen_from) return;
    for (unsigned i = 0, all = hk_bins_all(heap); i < all; i++)
        if (hk_bin_of(heap, i)->top != hk_bin_low(hk_bin_of(heap, i))) sift(heap, hk_bin_of(heap, i));
}

void hk_heap_flush(hak_ctx *heap)
{
    hk_heap_sift(heap);
    hk_magazines_flush(heap);
}

void hk_heap_forward(hak_ctx *heap, void *p)
{
    const hak_ctx *owner = heap;
    hk_extent *e;
    uint32_t kind = hk_find(&owner, p, &e);
    if (kind >= HK_BINS) {
        hk_found_wrong(heap, HK_WRONG_BLOCK, p);
        return;
    }
    hk_sub(&heap->heap->in_bytes, hk_kind_size(kind));
    hk_sub(&heap->heap->in_blocks, 1);
    push_stray((hak_ctx *)(uintptr_t)owner, p);
}

/* The program may have freed a block twice, or written to it, since it was linked. The blocks behind such a
 * link are lost. */
void hk_heap_strays(hak_ctx *heap)
{
    for (hk_link *at = hk_mpsc_take(&heap->heap->strays), *next; at; at = next) {
        const hak_ctx *owner = heap;
        hk_extent *e;
        uint32_t kind = hk_find(&owner, at, &e);
        if (HK_UNLIKELY(kind >= HK_BINS || !hk_block_size(heap, at))) {
            hk_found_wrong(heap, HK_WRONG_BLOCK, at);
            return;
        }
        next = at->next;
        hk_add(&heap->heap->in_bytes, hk_kind_size(kind));
        hk_add(&heap->heap->in_blocks, 1);
        if (!hk_block_put_back(heap, at)) hk_heap_forward(heap, at);
    }
}

void hk_remote_unpack(hak_ctx *heap, hk_batch *b, bool own)
{
    hk_heap *h = heap->heap;
    HK_ASSERT(hk_lock_held(&h->lock) && hk_batch_sound(b));
    unsigned n = hk_batch_count(b), others = hk_slab_free_all(heap, b->blocks, n, own);
    hk_add(&h->in_bytes, hk_get(&b->bytes));
    hk_add(&h->in_blocks, n);
    for (unsigned i = 0; i < others; i++)
        if (HK_UNLIKELY(!hk_block_put_back(heap, b->blocks[i]))) hk_heap_forward(heap, b->blocks[i]);
    hk_mpsc_push(&b->from->heap->empties, &b->link);
}

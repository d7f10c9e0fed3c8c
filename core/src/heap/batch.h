/* Batches: blocks set aside for the next allocations of a class, while a profile samples a context. Each
 * class then has a second bin, behind the bins of the kinds, and the table of classes leads allocations of up
 * to 1 KiB there. Frees push on the bin of the kind, as always. So the second bin only drains, and all blocks
 * put into it are allocated when it is empty. The draws for these blocks are made when the bin is filled, and
 * none when a block is popped.
 *
 * A block of n bytes is a sample with the chance 1 - exp(-n / mean), the same as where bytes are counted down
 * (profile/draw.c). So the number of blocks of a class up to its next sample has a geometric distribution,
 * from which that number is drawn for each class. */
#ifndef HK_BATCH_H
#define HK_BATCH_H

#include "heap/magazine.h"

enum { HK_BATCH_MOST = 64 };

/* While the table leads there; also after the end, without an effect. */
typedef struct hk_batches {
    uint8_t table[HK_BINS_TABLE];
    hk_bin bins[HK_BINS];
    hk_bin next[HK_KIB_CLASSES];   /* [slots, top): the batch */
    uint32_t left[HK_KIB_CLASSES]; /* blocks that are to come before the next sample; HK_BATCH_UNDRAWN */
} hk_batches;
#define HK_BATCH_UNDRAWN UINT32_MAX
_Static_assert(HK_BINS + HK_KIB_CLASSES <= 255, "a number in the table is a byte");

HK_INLINE hk_batches *hk_batches_of(const hak_ctx *ctx)
{
    return (hk_batches *)(void *)((char *)ctx->bins - HK_BINS_TABLE);
}

/* All of this is for the thread of the context, of a heap with its lock. */

/* Allocations go to batches from now on; nothing is drawn. false = no memory: they go on as they are. */
bool hk_batches_begin(hak_ctx *ctx);
/* Allocations go to the bins of the kinds. */
void hk_batches_end(hak_ctx *ctx);
/* What is set aside goes back to its slabs. */
void hk_batches_return(const hak_ctx *ctx);
/* Empties all magazines of a context, batches included. */
void hk_magazines_flush(hak_ctx *ctx);
/* Labels of blocks begin to be stored. */
void hk_batches_label(hak_ctx *ctx);
/* Moves n blocks at hand behind those that the batch has. */
HK_INLINE void hk_batch_move(hk_bin *next, hk_bin *bin, size_t n)
{
    void **from = bin->top - n, **to = next->top;
    /* Who forks beside this thread finds no block in both: see shared/thread_heap.h. */
    bin->top = from;
    atomic_signal_fence(memory_order_seq_cst);
    hk_blocks_copy(to, from, n);
    atomic_signal_fence(memory_order_seq_cst);
    next->top = to + n;
}

/* Whether there are enough blocks at hand for a batch, and no sample among them: hk_batch_quick() may be
 * called. */
HK_INLINE bool hk_batch_ready(const hak_ctx *ctx, unsigned sc)
{
    const hk_batches *b = hk_batches_of(ctx);
    const hk_bin *bin = &b->bins[sc];
    size_t n = (size_t)(bin->top - bin->slots);
    return b->next[sc].slots && n && n >= bin->cap / 2u && b->left[sc] >= HK_BATCH_MOST;
}

/* Fills the batch of the class, which is empty, and takes a block of it. Of a heap without its lock. */
HK_INLINE void *hk_batch_quick(hak_ctx *ctx, unsigned sc, hak_label label)
{
    hk_batches *b = hk_batches_of(ctx);
    hk_bin *next = &b->next[sc], *bin = &b->bins[sc];
    size_t n = hk_min((size_t)(bin->top - bin->slots), HK_BATCH_MOST), fours = n / 4 * 4;
    next->top = next->slots;
    /* Without a rest that is copied block by block. */
    if (HK_LIKELY(fours)) hk_batch_move(next, bin, n = fours);
    else hk_batch_move(next, bin, n);
    b->left[sc] -= (uint32_t)n;
    return hk_magazine_pop(next, label);
}

/* Of a local context: the same, straight from the current slab. NULL = blocks are at hand, or the slab has
 * none. */
void *hk_batch_here(hak_ctx *ctx, unsigned sc, hak_label label);
/* The same, after some more blocks came to hand. NULL = a sample is due, or the class has none. */
void *hk_batch_alloc(hak_ctx *ctx, unsigned sc, hak_label label);

#endif

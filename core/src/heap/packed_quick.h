/* The short paths of packed blocks: mark the start of a block, and find class and magazine of a block in the
 * window of a context that nobody watches. No branch depends on the place of a block, because processors
 * could not predict it. */
#ifndef HK_PACKED_QUICK_H
#define HK_PACKED_QUICK_H

#include "heap/account.h"
#include "heap/bins.h"

/* Marks that a block, or the region, starts at p. starts: the biased table of hk_slab. */
HK_INLINE void hk_start_mark(uintptr_t starts, const char *p)
{
    uint64_t *word = (uint64_t *)(starts + ((uintptr_t)p >> 9) * sizeof *word);
    hk_test_and_set(word, (uintptr_t)p >> 3);
}

/* Counts a block of that size which is handed out. */
HK_INLINE void hk_packed_count_in(hak_ctx *ctx, unsigned sc, size_t size)
{
    HK_ASSERT(size >= 16 && ctx->packed.live[sc] + size / 16 <= UINT16_MAX);
    ctx->packed.live[sc] = (uint16_t)(ctx->packed.live[sc] + size / 16);
    hk_count_in(ctx, size, 1);
}

/* Takes a block of the class out of them again. */
HK_INLINE void hk_packed_count_out(hak_ctx *ctx, unsigned sc, size_t size)
{
    HK_ASSERT(ctx->packed.live[sc] >= size / 16);
    ctx->packed.live[sc] = (uint16_t)(ctx->packed.live[sc] - size / 16);
    hk_count_out(ctx, size, 1);
}

/* Notes whether and how the context may cut blocks in line. Called when what is asked here changes. Only local
 * contexts ever may: threads that share one read the note without a lock, so that it is not written again. */
HK_INLINE void hk_packed_quicken(hak_ctx *ctx)
{
    bool may = ctx->packed.units && ctx->role == HK_LOCAL && !ctx->retired &&
               !(ctx->checked & (HK_PROFILED | HK_GUARDED));
    uint8_t quick = !may ? HK_CUT_NOT : ctx->labels.on ? HK_CUT_LABELLED : HK_CUT_PLAIN;
    if (ctx->packed.quick != quick) ctx->packed.quick = quick;
}

enum { HK_MARKS = 64 }; /* starts that one look sees, less up to 7 of them before the block */

/* The table of starts of this unit of the window, biased as in hk_slab. */
HK_INLINE uintptr_t hk_packed_starts(const hak_ctx *ctx, size_t unit)
{
    return hk_slab_by_map(ctx->map, unit)->starts;
}

/* Returns the 64 marks that begin so many bytes behind that of p's mark. The table ends with a word of ones. Other threads
 * may be changing other bits. */
HK_RACY_INLINE uint64_t hk_packed_marks(const void *p, uintptr_t starts, size_t behind)
{
    uint64_t marks;
    memcpy(&marks, (const char *)(starts + ((uintptr_t)p >> 6)) + behind, sizeof marks);
    return marks;
}

/* Whether a block, a free one perhaps, or the region starts at p, of whose unit these are the starts. Stores the marks
 * behind its own; none of the next 57 to 64 may be set. */
HK_INLINE bool hk_packed_marked(const void *p, uintptr_t starts, uint64_t *behind)
{
    if (HK_UNLIKELY((uintptr_t)p % 8)) return false;
    *behind = hk_packed_marks(p, starts, 0);
    return HK_LIKELY(hk_shift_out(behind, ((uintptr_t)p >> 3 & 7) + 1));
}

/* Returns the class of a block by the marks behind its own: it has eight times as many bytes as there are
 * bits to the next one. */
HK_INLINE unsigned hk_packed_class_by(uint64_t behind)
{
    return (unsigned)hk_first_bit(behind);
}

/* Returns the bin of a class. */
HK_INLINE hk_bin *hk_packed_bin(const hak_ctx *ctx, unsigned sc)
{
    return (hk_bin *)(void *)((char *)ctx->bins + hk_shift_left(sc, HK_BIN_SHIFT));
}

/* Returns the bin of the class of a block by the marks behind its own. */
HK_INLINE hk_bin *hk_packed_bin_by(const hak_ctx *ctx, uint64_t behind)
{
    return hk_packed_bin(ctx, hk_packed_class_by(behind));
}

/* Finds the class of a block, where a start is marked, by the 64 marks behind the 57 to 64 that a look takes in, of which
 * none is set. false = the block ends farther away, or no class has its size. */
HK_INLINE bool hk_packed_class_wide(const void *p, uintptr_t starts, unsigned *sc)
{
    uint64_t more = hk_packed_marks(p, starts, sizeof more);
    if (HK_UNLIKELY(!more)) return false;
    size_t eighth = HK_MARKS - ((uintptr_t)p >> 3 & 7) + hk_first_bit(more);
    *sc = hk_class_table[eighth];
    return HK_LIKELY(hk_classes[*sc].size == eighth * 8);
}

/* Pushes p on the magazine of packed blocks that the bin of its class may have, and counts the free in bin->closed,
 * which has its highest bit set there, and nowhere else. The bins of a context without magazines are constant:
 * these are full. */
HK_INLINE bool hk_packed_push_quick(hk_bin *bin, void *p)
{
    void **top = bin->top;
    if (HK_UNLIKELY(top == bin->hi)) return false;
    if (HK_UNLIKELY(!hk_count_high(&bin->closed))) {
        bin->closed--;
        return false;
    }
    *top = p;
    /* The order matters to a child that is forked between the two stores: see shared/thread_heap.h. */
    atomic_signal_fence(memory_order_release);
    bin->top = top + 1;
    return true;
}

/* Whether one look tells that the block at p is kept when it is resized to n, its alignment and label apart.
 */
HK_INLINE bool hk_packed_stays(const hak_ctx *ctx, const void *p, size_t unit, size_t n)
{
    uint64_t behind = 0;
    if (HK_UNLIKELY(!hk_packed_marked(p, hk_packed_starts(ctx, unit), &behind))) return false;
    if (HK_UNLIKELY(!behind)) return false;
    const hk_class *c = &hk_classes[hk_packed_class_by(behind)];
    return n <= c->size && n >= c->least;
}

#endif

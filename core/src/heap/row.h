/* Rows make the frees of a sweep fast. While a magazine is closed, frees of its class set bits. A collector
 * frees in the order of addresses, so most frees set a bit in the same word of the same bitmap as the free
 * before. The bin remembers that word and its blocks, a row. A free in the row need not look at the slab: it
 * finds the number of the block in the row, tests the bit and sets it.
 *
 * Blocks freed in a row are counted when the row is left or settled. Until then the slab's `used` and the
 * context's live blocks include them, as they include blocks in magazines. The bitmap is right at any time.
 * Whoever reads or changes one of these counts, or takes blocks from the word, settles the row first. Only
 * local contexts have rows, in their window, for classes whose slabs are one unit. */
#ifndef HK_ROW_H
#define HK_ROW_H

#include "heap/metadata.h"
#include "heap/slab.h"

/* Frees p if it is a block of the row that is out. An offset is a multiple of the size and below `blocks` of
 * them just if its product with the inverse, rotated, is below `blocks` (Granlund, Montgomery, "Division by
 * invariant integers", 1994): one comparison for any address. */
HK_INLINE bool hk_row_free(hk_row *row, const void *p)
{
    uint64_t i = hk_rotate_right(((uintptr_t)p - row->first) * row->inverse, row->turn);
    if (HK_UNLIKELY(i >= row->blocks)) return false;
    uint64_t w = *row->word;
    if (HK_UNLIKELY(hk_test_and_set(&w, i))) return false;
    *row->word = w;
    return true;
}

/* Slots for so many blocks of the kind, behind a row; HK_BINS = of a kind without rows. NULL = no memory. */
void **hk_row_slots(hak_ctx *ctx, unsigned kind, unsigned n);
/* The magazine is closed and p is in no row: the row of p becomes the bin's, and p is freed. */
void hk_row_next(hak_ctx *ctx, hk_bin *bin, void *p);
/* Counts the frees of the row. The slab may go back, and the row with it; the magazine may open. */
void hk_row_settle_now(hak_ctx *ctx, hk_bin *bin);
HK_INLINE void hk_row_settle(hak_ctx *ctx, hk_bin *bin)
{
    if (ctx->magazines.swept && bin->slots && hk_row_of(bin)->blocks) hk_row_settle_now(ctx, bin);
}
/* The same, and there is no row afterwards. */
HK_INLINE void hk_row_end(hak_ctx *ctx, hk_bin *bin)
{
    if (HK_LIKELY(!ctx->magazines.swept)) return;
    hk_row_settle(ctx, bin);
    if (bin->slots) hk_row_of(bin)->blocks = 0;
}
/* Returns a block to its bitmap, with all checks. A second free of p may have been in the row. */
void hk_slab_free(hak_ctx *ctx, hk_extent *e, unsigned kind, void *p);
/* All rows of a context. */
void hk_rows_settle(const hak_ctx *ctx);
void hk_rows_end(hak_ctx *ctx);
/* The context ends. Bitmaps are wiped where the counts say that bits are set; the counts know nothing of the
 * word of a row. */
void hk_rows_wipe(hak_ctx *ctx);

#endif

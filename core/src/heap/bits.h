/* The places of the blocks of a slab, and their bits in its bitmap; and the row of a bin, which is one word
 * of that bitmap (row.h). */
#ifndef HK_BITS_H
#define HK_BITS_H

#include "heap/ctx.h"

/* Whether even the current slab of the class goes back when it is empty. */
HK_INLINE bool hk_slab_returns(const hak_ctx *ctx, unsigned kind)
{
    return hk_classes[kind].size > ctx->magazines.most;
}

/* Offset of the first block of a slab. */
HK_INLINE unsigned hk_slab_first_offset(const hak_ctx *ctx, unsigned kind)
{
    return kind < HK_KIB_CLASSES ? ctx->first_offset : 0;
}

HK_INLINE char *hk_slab_first(const hak_ctx *ctx, const hk_extent *e, const hk_slab *slab)
{
    return hk_slab_start(e, slab) + hk_slab_first_offset(ctx, slab->kind);
}

/* The number of the block that begins `offset` bytes behind the first one of a slab; UINT32_MAX = none does.
 * The low half of the product tells multiples of the size from other offsets below 128 KiB (Lemire, Kaser,
 * Kurz, "Faster remainder by direct computation", 2019); larger ones give no number that a slab has. */
HK_INLINE uint32_t hk_slab_number(unsigned kind, uint32_t offset)
{
    uint32_t reciprocal = hk_classes[kind].reciprocal;
    uint64_t product = (uint64_t)offset * reciprocal;
    return HK_LIKELY((uint32_t)product < reciprocal) ? (uint32_t)(product >> 32) : UINT32_MAX;
}

/* Where a block's slab is. */
typedef struct hk_place {
    hk_slab *slab;
    uintptr_t first; /* address of the first block */
    uint64_t *bits;
} hk_place;

HK_INLINE hk_place hk_place_of(const hak_ctx *ctx, const hk_extent *e, unsigned kind, const void *p)
{
    size_t unit = ((uintptr_t)p - e->base) >> HK_UNIT_SHIFT;
    hk_slab *s = hk_extent_slab(e, unit);
    unit -= s->head;
    s += s->head;
    return (hk_place){s, e->base + (unit << HK_UNIT_SHIFT) + hk_slab_first_offset(ctx, kind),
                      hk_slab_bits(e, s)};
}

/* Number of the block that starts at p, which lies in the slab found here; -1 = none does. */
HK_RACY_INLINE int hk_slab_index(const hak_ctx *ctx, const hk_extent *e, unsigned kind, const void *p,
                                 hk_slab **slab)
{
    hk_place at = hk_place_of(ctx, e, kind, p);
    *slab = at.slab;
    uint32_t i = hk_slab_number(kind, (uint32_t)((uintptr_t)p - at.first));
    return i < at.slab->fresh ? (int)i : -1;
}

/* Blocks of a slab. */
HK_INLINE unsigned hk_slab_capacity(const hak_ctx *ctx, const hk_slab *slab)
{
    size_t room = ((size_t)slab->units << HK_UNIT_SHIFT) - hk_slab_first_offset(ctx, slab->kind);
    size_t blocks = (size_t)((uint64_t)room * hk_classes[slab->kind].reciprocal >> 32);
    return (unsigned)hk_min(blocks, (size_t)slab->units * HK_UNIT_BITS);
}

/* false = it is set: the block is not out. Block memory is not touched. */
HK_INLINE bool hk_slab_set_bit(uint64_t *bits, uint32_t i)
{
    uint64_t *word = bits + i / 64, w = *word;
    if (HK_UNLIKELY(w >> (i % 64) & 1)) return false;
    *word = w | UINT64_C(1) << (i % 64);
    return true;
}

/* false = no block that is out. */
HK_INLINE bool hk_slab_take_back(hk_place at, unsigned kind, const void *p)
{
    uint32_t i = hk_slab_number(kind, (uint32_t)((uintptr_t)p - at.first));
    return HK_LIKELY(i < at.slab->fresh) && hk_slab_set_bit(at.bits, i);
}

/* In front of the slots of each magazine. */
typedef struct hk_row {
    uintptr_t first;  /* address of the first block of the row */
    uint64_t inverse; /* of the odd part of the block size, modulo 2^64 */
    uint64_t blocks;  /* blocks of the row that were ever handed out; 0 = there is no row */
    uint64_t *word;
    uint64_t before; /* the word when it was last counted */
    uint8_t turn;    /* log2 of the even part of the block size */
    uint8_t room;    /* slots behind it */
} hk_row;
_Static_assert(sizeof(hk_row) % 16 == 0, "slots behind it are aligned");

/* The bin has slots. */
HK_INLINE hk_row *hk_row_of(const hk_bin *bin)
{
    return (hk_row *)(void *)bin->slots - 1;
}

/* The unit where the row is, or was. */
HK_INLINE size_t hk_row_unit(const hak_ctx *ctx, const hk_row *row)
{
    return (row->first - ctx->base) >> HK_UNIT_SHIFT;
}
/* The slab leaves its bin. Its row is settled. */
HK_INLINE void hk_row_leave(const hak_ctx *ctx, const hk_bin *bin, const hk_slab *s)
{
    if (!ctx->magazines.swept || !bin->slots) return;
    hk_row *row = hk_row_of(bin);
    if (hk_row_unit(ctx, row) == hk_extent_unit(ctx->extent, s)) row->blocks = 0;
}
/* Blocks were taken from the slab. If the row is in it, it was settled before: it starts to count anew. */
HK_INLINE void hk_row_taken(const hak_ctx *ctx, hk_row *row, const hk_slab *s)
{
    if (row->blocks && hk_row_unit(ctx, row) == hk_extent_unit(ctx->extent, s)) row->before = *row->word;
}

#endif

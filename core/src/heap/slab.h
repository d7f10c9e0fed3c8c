/* Slabs: units cut into blocks of one class, with a bitmap of free blocks off the blocks.
 *
 * `used` counts the blocks that are not in the bitmap. A slab is
 *   current   refills of its bin come from it; trigger = never, or 0 in a class without magazine
 *   full      in no list; the first free (trigger = blocks - 1) puts it at the end of the bin's list
 *   partial   in the bin's list; the last free (trigger = 0) gives its units back to the space
 * A slab of a single block is never partial: its free gives it back. So a free decrements `used` and compares
 * it once, with the trigger. */
#ifndef HK_SLAB_H
#define HK_SLAB_H

#include "heap/ctx.h"

#define HK_TRIGGER_NEVER UINT16_MAX

/* A class leaves packed units for slabs of its own. false = no memory. */
bool hk_class_open(hak_ctx *ctx, unsigned sc);
/* Moves up to `want` blocks, in address order, from slabs to the empty magazine; takes a new slab if
 * there is none. false = no memory. */
bool hk_slab_refill(hak_ctx *ctx, hk_bin *bin, unsigned want);
/* The same from the current slab, which the bin has, alone. false = it has none for magazines. */
bool hk_slab_refill_here(hak_ctx *ctx, hk_bin *bin, unsigned want);
/* Whether the class has free blocks in its magazine or slabs. */
bool hk_class_has_free(const hak_ctx *ctx, const hk_bin *bin);
/* The next wider class with free blocks, however wide, for when there is no other memory; HK_SMALL_CLASSES =
 * none. */
unsigned hk_class_wider(hak_ctx *ctx, unsigned sc);
/* Returns a block to its bitmap, with all checks. */
void hk_slab_free(hak_ctx *ctx, hk_extent *e, unsigned kind, void *p);
/* Frees small blocks of the context's window, under its lock: into their magazines if the calling thread owns
 * these and they have room, else to their bitmaps. Blocks of other kinds are moved to the front of the array;
 * returns how many. */
unsigned hk_slab_free_all(hak_ctx *ctx, void **blocks, unsigned n, bool own);
/* Takes over a slab of another heap, with its units: puts it into the list where it belongs. */
void hk_slab_take_over(hak_ctx *ctx, hk_slab *slab);
/* A slab leaves its bin. */
void hk_slab_leave(hak_ctx *ctx, hk_slab *slab);
/* Returns blocks of a class to their bitmaps, faster if most lie in the slab of the one before. Returns how
 * many were no live blocks. The caller counts live blocks. */
size_t hk_slab_put_all(hak_ctx *ctx, unsigned kind, void **block, void **end);
/* Puts p into the bitmap of its slab, if it still lies in one of the kind. */
void hk_slab_put_found(hak_ctx *ctx, hk_extent *e, unsigned kind, void *p);
/* `used` has fallen to the trigger: the slab was full and has a free block, or it is empty. */
HK_NOINLINE void hk_slab_event(hak_ctx *ctx, hk_slab *s, unsigned kind);
/* Whether block i of the slab is out of the bitmap (live or in a magazine). */
HK_RACY bool hk_slab_block_out(const hk_extent *e, const hk_slab *slab, unsigned i);

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
HK_RACY static inline int hk_slab_index(const hak_ctx *ctx, const hk_extent *e, unsigned kind, const void *p,
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

/* After hk_slab_take_back(). */
HK_INLINE void hk_slab_count_down(hak_ctx *ctx, hk_slab *s, unsigned kind)
{
    if (HK_UNLIKELY(--s->used == s->trigger)) hk_slab_event(ctx, s, kind);
}

/* The call comes last, as a jump, so that the function needs no stack frame. */
HK_INLINE void hk_slab_put_back(hak_ctx *ctx, hk_extent *e, unsigned kind, void *p)
{
    hk_place at = hk_place_of(ctx, e, kind, p);
    if (HK_UNLIKELY(!hk_slab_take_back(at, kind, p))) {
        hk_found_wrong(ctx, HK_WRONG_BLOCK, p);
        return;
    }
    hk_count_out(ctx, hk_classes[kind].size, 1);
    hk_slab_count_down(ctx, at.slab, kind);
}

#endif

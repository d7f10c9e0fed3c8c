/* Slabs: units cut into blocks of one class, with a bitmap of free blocks off the blocks.
 *
 * `used` counts the blocks that are not in the bitmap. A slab is
 *   current   refills of its bin come from it; trigger = never, or 0 in a class without magazine
 *   full      in no list; the first free (trigger = blocks - 1) puts it at the end of the bin's list
 *   partial   in the bin's list; the last free (trigger = 0) gives its units back to the space
 * One of a single block is current or full, and its free gives it back.
 * so a free does one decrement and one comparison. */
#ifndef HK_SLAB_H
#define HK_SLAB_H

#include "ctx.h"

#define HK_TRIGGER_NEVER UINT16_MAX

/* A class leaves packed units for slabs of its own. false = no memory. */
bool hk_class_open(hak_ctx *ctx, unsigned class);
/* Moves up to `want` blocks, in address order, from slabs to the empty magazine; takes a new slab if
 * there is none. false = no memory. */
bool hk_slab_refill(hak_ctx *ctx, hk_bin *bin, unsigned want);
/* Where the heap of a thread takes a block of the class: there while it has free ones. Before it would take
 * units for a class, or fresh blocks of more than 1 KiB, it uses up what classes a little wider have free. */
unsigned hk_class_lends(hak_ctx *heap, unsigned class);
/* Classes of blocks above 1 KiB may borrow as often as at first. */
void hk_classes_borrow_anew(hak_ctx *heap);
/* A block back to its bitmap, with all checks. */
void hk_slab_free(hak_ctx *ctx, hk_extent *e, unsigned kind, void *p);
/* Small blocks of the context's window, under its lock: into their magazines, where the calling thread owns
 * these and they have room, else to their bitmaps. Other blocks are moved to the front; returns how many. */
unsigned hk_slab_free_all(hak_ctx *ctx, void **blocks, unsigned n, bool own);
/* Blocks [0, n) of the bin's magazine back to their slabs. */
void hk_magazine_flush(hak_ctx *ctx, hk_bin *bin, size_t n);
/* A slab that was another heap's, with its units: into the list where it belongs. */
void hk_slab_adopt(hak_ctx *ctx, hk_slab *slab);
/* A slab leaves its bin. */
void hk_slab_leave(hak_ctx *ctx, hk_slab *slab);
/* Blocks in magazines whose slabs went over to another heap follow them. */
void hk_magazines_sift(hak_ctx *ctx);
/* All of a context's magazines. */
void hk_magazines_flush(hak_ctx *ctx);
/* Before n bytes of fresh pages are used: what is in magazines of a local context goes back, runs for
 * whatever is larger than a unit, blocks above 1 KiB near the peak. */
void hk_magazines_yield_now(hak_ctx *ctx, size_t n);
HK_INLINE void hk_magazines_yield(hak_ctx *ctx, size_t n)
{
    if (ctx->larger_kept && ctx->role == HK_LOCAL) hk_magazines_yield_now(ctx, n);
}
/* The magazine had no room for p: flush, or step aside for a sweep, and free p. */
void hk_magazine_overflow(hak_ctx *ctx, hk_bin *bin, void *p);
/* The magazine is full: more room, if it swings between empty and full. */
void hk_magazine_grow(hak_ctx *ctx, hk_bin *bin);
/* Takes a partial slab out of its bin's list. */
void hk_slab_unlist(hak_ctx *ctx, hk_bin *bin, hk_slab *s);
/* Whether block i of the slab is out of the bitmap (live or in a magazine). */
HK_RACY bool hk_slab_block_out(const hk_extent *e, const hk_slab *slab, unsigned i);

/* Whether an empty slab of the class goes back although the next block would come from it. */
HK_INLINE bool hk_slab_returns(const hak_ctx *ctx, unsigned kind)
{
    return hk_classes[kind].size > ctx->magazine_most;
}

/* Blocks at a refill: half a magazine, so that frees find room; all of it while frees pass it by. */
HK_INLINE unsigned hk_refill_of(const hk_bin *bin)
{
    unsigned n = bin->closed ? bin->cap : (bin->cap + 1u) / 2;
    return n ? n : 1;
}

/* Offset of the first block of a slab. */
HK_INLINE unsigned hk_slab_phase(const hak_ctx *ctx, unsigned kind)
{
    return kind < HK_KIB_CLASSES ? ctx->phase : 0;
}

HK_INLINE char *hk_slab_first(const hak_ctx *ctx, const hk_extent *e, const hk_slab *slab)
{
    return hk_slab_start(e, slab) + hk_slab_phase(ctx, slab->kind);
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
    return (hk_place){s, e->base + (unit << HK_UNIT_SHIFT) + hk_slab_phase(ctx, kind), hk_slab_bits(e, s)};
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
    size_t room = ((size_t)slab->units << HK_UNIT_SHIFT) - hk_slab_phase(ctx, slab->kind);
    size_t blocks = (size_t)((uint64_t)room * hk_classes[slab->kind].reciprocal >> 32);
    return (unsigned)hk_min(blocks, (size_t)slab->units * HK_UNIT_BITS);
}

#endif

/* Units that a context owns: charges them, takes them from the space, records them, and lists them. */
#ifndef HK_UNITS_H
#define HK_UNITS_H

#include "heap/account.h"
#include "heap/bins.h"

/* What a unit costs beside its own bytes and its bitmap: slab record, map entry. */
enum { HK_UNIT_META = sizeof(hk_slab) + sizeof(uint32_t) };

/* In front of a group's tables. */
typedef struct hk_packed_head {
    int32_t
        before; /* the group that the context took before this one, counted from its first unit; 0 = that */
    uint32_t gone; /* pages of the group that are not charged, a bit for each: a row of them is a marked free
                      block, or several, that are in no list */
} hk_packed_head;
enum {
    HK_PACKED_HEAD = 16,                 /* the head, and a word of ones that ends the table of starts */
    HK_PACKED_TABLES = HK_UNIT / 128 * 3 /* what a unit costs for tables */
};
_Static_assert(sizeof(hk_packed_head) + sizeof(uint64_t) == HK_PACKED_HEAD && HK_PACKED_TABLES % 16 == 0,
               "blocks behind them are aligned");

/* Returns the bytes of a group that are not charged. */
HK_INLINE size_t hk_packed_lacks(const hk_packed_head *head)
{
    return hk_bits(head->gone) * HK_PAGE;
}

/* Lets the fast paths reach what its extent has grown by. [its thread] */
HK_INLINE void hk_widen(hak_ctx *ctx)
{
    uint32_t reach = hk_extent_reach(ctx->extent);
    if (HK_UNLIKELY(ctx->units != reach) && ctx->units)
        __atomic_store_n(&ctx->units, reach, __ATOMIC_RELAXED);
}

/* Returns what hk_kind_in_window() does, for any extent; *e is the extent. */
uint32_t hk_kind_at(const hak_ctx *ctx, const void *p, hk_extent **e);
/* The kind of a watched unit of the context `owner`. Whoever holds no block of the unit, as sums of labels
 * that look into the caches of other threads, may get that of a slab which was or will be there. */
HK_RACY uint32_t hk_kind_watched(hk_unit_id owner, const hk_extent *e, const void *p);
/* Makes frees of blocks in the unit at p take the slow path, or no longer. No effect outside of extents, and
 * in units that ctx, which may be shared, does not own. */
void hk_unit_watch(const hak_ctx *ctx, const void *p, bool watch);

/* Charges n bytes; if that is refused, once more without cached big blocks. */
bool hk_reclaim_charge(hak_ctx *ctx, size_t n);
/* Charges units of this kind, with their metadata. */
bool hk_units_charge(hak_ctx *ctx, unsigned kind, size_t units);
/* Takes units that are charged already; NULL = failed, and no longer charged. */
hk_slab *hk_units_take_charged(hak_ctx *ctx, size_t units, unsigned kind, hk_want want, bool *zero);
/* Takes units for the context's own data: charged, recorded (id, kind, units) and in its list. Magazines may
 * need room for their slots, so they are not emptied before. NULL = failed. */
hk_slab *hk_units_take_own(hak_ctx *ctx, size_t units, bool *zero);
/* What is charged for all units of the context, for assertions. */
size_t hk_units_charged(hak_ctx *ctx);
void hk_units_give(hak_ctx *ctx, hk_slab *slab);
/* Up to four units of which the last `lacks` bytes are not charged, whole pages. NULL = over the limit, or
 * refused. */
hk_slab *hk_units_take_part(hak_ctx *ctx, size_t units, size_t lacks, unsigned kind);
void hk_units_give_part(hak_ctx *ctx, hk_slab *slab, size_t lacks);
/* Pages of a group of up to four units, from this offset on, are no longer resident. They stay charged. */
void hk_units_leave_pages(hak_ctx *ctx, hk_slab *slab, size_t from, size_t n);
/* Charges such pages again. false = over the limit, or refused. */
bool hk_units_regain_pages(hak_ctx *ctx, hk_slab *slab, size_t from, size_t n);
/* Clears the bitmap of a slab that goes back. */
void hk_slab_wipe(hak_ctx *ctx, const hk_slab *slab);
/* Units of a slab or run move to another heap of the same shared context; both locks are held. */
void hk_units_move(hak_ctx *from, hak_ctx *to, hk_slab *slab);
/* Takes units of which `lacks` bytes are not charged yet. The caller does not touch so many of them before others were
 * handed over, or left, for them. NULL = over the limit, or refused. */
hk_slab *hk_units_take_ahead(hak_ctx *ctx, size_t units, size_t lacks, unsigned kind);
/* Gives back the last unit of a run, which has others. What was charged for the unit pays for one that was taken
 * ahead. */
void hk_units_hand_over(hak_ctx *ctx, hk_slab *slab);
/* Gives back units at the end of a run. */
void hk_units_shorten(hak_ctx *ctx, hk_slab *slab, size_t units);
bool hk_units_lengthen(hak_ctx *ctx, hk_slab *slab, size_t units);
/* Label bytes that a slab or run of this kind and length needs when the context is labelled. */
size_t hk_label_bytes(unsigned kind, size_t units);

#define HK_EACH_OWNED(ctx, slab)                                                                             \
    for (hk_slab *slab = (ctx)->owned.all ? hk_slab_at((ctx)->space, (ctx)->owned.all) : NULL; slab;         \
         slab = slab->all_next ? hk_slab_at((ctx)->space, slab->all_next) : NULL)

#endif

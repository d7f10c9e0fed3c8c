/* Packed units: small blocks side by side, whatever their class. A class of its own pages wastes half a page
 * on average, which dozens of classes in a small heap cannot afford; so a class leaves for slabs only when it
 * would fill them. Units are taken one by one, then in groups of up to four. A group has a bit for each 8
 * bytes (a block starts here) and one for each 16 (the block that starts here is free); blocks are 16 bytes
 * at least. Labels: see packed_label.h. Free blocks are listed by size; those side by side are
 * joined before a further group is taken. */
#ifndef HK_PACKED_H
#define HK_PACKED_H

#include "heap/packed_label.h"

/* In front of a group's tables. */
typedef struct hk_packed_head {
    int32_t
        before; /* the group that the context took before this one, counted from its first unit; 0 = that */
    uint32_t lacks; /* bytes at the end of the group that are not charged, and no block: a marked free one
                       that is in no list */
} hk_packed_head;
enum {
    HK_PACKED_HEAD = 16,                  /* the head, and a word of ones that ends the table of starts */
    HK_PACKED_TABLES = HK_UNIT / 128 * 3, /* what a unit costs for tables */
};
_Static_assert(sizeof(hk_packed_head) + sizeof(uint64_t) == HK_PACKED_HEAD && HK_PACKED_TABLES % 16 == 0,
               "blocks behind them are aligned");

/* Sizes that hak_tuning.slab_sizes has a bit for: 8 to 512. */
enum { HK_SLAB_SIZES = 64 };
/* The context, which is new, never packs blocks of these sizes. */
void hk_packed_skip(hak_ctx *ctx, size_t sizes);
/* Those whose classes have slabs, or will have them with their first block; with hot also those whose blocks
 * come and go, but none without a slab. */
size_t hk_packed_sizes(const hak_ctx *ctx, bool hot);

enum {
    HK_PACKED_PAID = 64,  /* frees after which magazines are worth their memory, two pages */
    HK_PACKED_HOT = 192,  /* heat of a class whose blocks come and go */
    HK_PACKED_LEFT = 255, /* ... of one that has slabs */
    HK_PACKED_FULL = 3072 /* granules of 16 bytes: a small class with as much live fills slabs of its own */
};

/* Granules of 16 bytes that a class has when it leaves: 48 KiB, or eight blocks. */
HK_INLINE unsigned hk_packed_full(unsigned sc)
{
    return (unsigned)hk_max(HK_PACKED_FULL, hk_classes[sc].size / 2u);
}

/* bin->closed where a magazine has packed blocks: it counts frees up from here, and at 0 the class leaves. No
 * magazine of slabs is closed for so many. */
enum { HK_KEPT_FIRST = UINT16_MAX - 255 };

/* Whether the class's bin keeps packed blocks at hand. */
HK_INLINE bool hk_packed_keeps(const hak_ctx *ctx, unsigned sc)
{
    return ctx->packed.kept[sc / 64] >> (sc % 64) & 1;
}

/* Whether the class's magazine is one of packed blocks that is shut, because it cannot write their labels,
 * and has a block for this label, which hk_packed_take() takes. */
HK_INLINE bool hk_packed_at_hand(const hk_bin *bin, hak_label label)
{
    return bin->lo == HK_SHUT_EVER && bin->top != bin->slots &&
           (bin->kind >= HK_TWO_HALVES_CLASS || label <= HK_HALF_MOST);
}
void *hk_packed_take(hak_ctx *ctx, hk_bin *bin, hak_label label);

/* The context's first unit; blocks start behind the context itself. */
void hk_packed_init(hak_ctx *ctx);
/* A context that packs may have so many bytes of packed units from now on (0 = none). If it has more, its
 * classes leave for slabs, and units go back as their blocks do; a class that took no slab comes back when
 * there may be more. A step for each class. */
void hk_packed_limit(hak_ctx *ctx, size_t bytes);

/* Whether hk_packed_cut() can serve the class: it has no free blocks, and there is room for one of 16 bytes
 * at least, or 32 for its label, aligned, and 16 bytes behind it. */
HK_INLINE bool hk_packed_ready(const hak_ctx *ctx, unsigned sc)
{
    const hk_packed *k = &ctx->packed;
    return k->quick && !ctx->account.pressure && k->heat[sc] < HK_PACKED_LEFT && !k->free[sc] &&
           k->live[sc] < HK_PACKED_FULL && (size_t)(k->end - k->at) >= hk_classes[sc].size + 48u;
}
/* Whether hk_packed_again() may serve the class, of a local context, by one of its free blocks. */
HK_INLINE bool hk_packed_listed(const hak_ctx *ctx, unsigned sc)
{
    const hk_packed *k = &ctx->packed;
    return k->free[sc] && k->live[sc] < HK_PACKED_FULL && k->heat[sc] < HK_PACKED_LEFT;
}
/* NULL = it needs a larger one, or another alignment, or somebody wrote to it. */
HK_NOINLINE void *hk_packed_again(hak_ctx *ctx, unsigned sc, hak_label label);
void *hk_packed_cut(hak_ctx *ctx, unsigned sc, hak_label label);
/* NULL = the class should have slabs, or there is no room: open the class. A context near its limit packs
 * blocks of any class. */
void *hk_packed_alloc(hak_ctx *ctx, unsigned sc, size_t n, hak_label label);
/* For any class, when there is no other memory. NULL = none. */
void *hk_packed_last(hak_ctx *ctx, unsigned sc, size_t n, hak_label label);
/* Whether so little of a limit is left that a class without slabs takes none which packed units can serve as
 * well. */
bool hk_packed_scarce(const hak_ctx *ctx);
/* Whether the limit is so small that a few slabs, or magazines of all classes, are a large part of it. */
bool hk_packed_limited(const hak_ctx *ctx);
/* For a class that has slabs, if what is left of a limit is less than one slab more for each such class. NULL
 * = it is more, or no packed memory. */
void *hk_packed_beside_slabs(hak_ctx *ctx, unsigned sc, size_t n, hak_label label);
/* Frees p into the magazine of its class if that has one, else to the lists. */
void hk_packed_free(hak_ctx *ctx, void *p);
/* The same for a local context that nobody watches and its window. */
void hk_packed_free_quick(hak_ctx *ctx, void *p);
/* To the lists. */
void hk_packed_put(hak_ctx *ctx, void *p);
/* Gives back packed units without a live block, and joins free blocks that lie side by side. Takes a step for
 * each packed block, but none at all where no packed block was freed since the last time. */
void hk_packed_trim(hak_ctx *ctx);
/* The same if enough bytes were freed to pay for the steps. */
void hk_packed_trim_much(hak_ctx *ctx);
/* The same if as much was freed as a sixteenth of what is live: when few blocks are left, each may hold a
 * group. */
void hk_packed_trim_freed(hak_ctx *ctx);
/* Whether a block, live or free, starts at p. */
bool hk_packed_start(const hak_ctx *ctx, const void *p);
/* Usable size; 0 = not the start of a live block. */
size_t hk_packed_size(const hak_ctx *ctx, const void *p);
/* Calls fn for each live block in packed units; false = stopped. */
bool hk_packed_visit(const hak_ctx *ctx, hak_visit_fn *fn, void *user);

#endif

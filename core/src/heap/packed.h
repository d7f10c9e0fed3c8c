/* Packed units: small blocks side by side, whatever their class. A class of its own pages wastes half a page
 * on average, which dozens of classes in a small heap cannot afford; so a class leaves for slabs only when it
 * would fill them. Units are taken one by one, then in groups of up to four. A group has a bit for each 8
 * bytes (a block starts here) and one for each 16 (the block that starts here is free); blocks are 16 bytes
 * at least. Labels: see packed_label.h. Free blocks are listed by size; those side by side are
 * joined before a further group is taken. */
#ifndef HK_PACKED_H
#define HK_PACKED_H

#include "heap/account.h"
#include "heap/bins.h"
#include "heap/packed_groups.h"
#include "heap/packed_label.h"
#include "heap/packed_quick.h"

/* Sizes that hak_tuning.slab_sizes has a bit for: 8 to 512. */
enum { HK_SLAB_SIZES = 64 };
/* The context, which is new, never packs blocks of these sizes. */
void hk_packed_skip(hak_ctx *ctx, size_t sizes);
/* Those whose classes have slabs, or will have them with their first block; with hot also those whose blocks
 * come and go, but none without a slab. */
size_t hk_packed_sizes(const hak_ctx *ctx, bool hot);

enum {
    HK_PACKED_FULL = 3072 /* granules of 16 bytes: a small class with as much live fills slabs of its own */
};

/* Granules of 16 bytes that a class has when it leaves: 48 KiB, or eight blocks. */
HK_INLINE unsigned hk_packed_full(unsigned sc)
{
    return (unsigned)hk_max(HK_PACKED_FULL, hk_classes[sc].size / 2u);
}

/* Whether the class's magazine is one of packed blocks that is shut, because it cannot write their labels,
 * and has a block for this label, which hk_packed_take() takes. */
HK_INLINE bool hk_packed_at_hand(const hk_bin *bin, hak_label label)
{
    return bin->lo == HK_SHUT_EVER && bin->top != bin->slots &&
           (bin->kind >= HK_TWO_HALVES_CLASS || label <= HK_HALF_MOST);
}
void *hk_packed_take(hak_ctx *ctx, hk_bin *bin, hak_label label);

/* A context that packs may have so many bytes of packed units from now on (0 = none). If it has more, its
 * classes leave for slabs, and units go back as their blocks do; a class that took no slab comes back when
 * there may be more. A step for each class. */
void hk_packed_limit(hak_ctx *ctx, size_t bytes);

/* Whether hk_packed_cut() can serve the class, in a context of that kind, HK_CUT_...: the class has no free
 * blocks, and there is room for a block of 16 bytes at least, or 32 for its label, aligned, and 16 bytes
 * behind it. */
HK_INLINE bool hk_packed_ready(const hak_ctx *ctx, unsigned sc, unsigned how)
{
    const hk_packed *k = &ctx->packed;
    return k->quick == how && !ctx->account.pressure && k->heat[sc] < HK_PACKED_LEFT && !k->free[sc] &&
           k->live[sc] < HK_PACKED_FULL && k->at + hk_classes[sc].size + 48u <= k->end;
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
/* The same in a context without labels, of a class that is not 0. */
HK_INLINE void *hk_packed_cut_quick(hak_ctx *ctx, unsigned sc)
{
    hk_packed *k = &ctx->packed;
    size_t size = hk_classes[sc].size;
    char *p = k->at, *next = p + size;
    bool skips = (uintptr_t)p & (uintptr_t)next & 8; /* so that the block is aligned */
    if (HK_UNLIKELY(skips)) return hk_packed_cut(ctx, sc, 0);
    k->at = next;
    hk_start_mark(k->starts, next);
    hk_packed_count_in(ctx, sc, size);
    return p;
}
/* NULL = the class should have slabs, or there is no room: open the class. A context near its limit packs
 * blocks of any class. */
void *hk_packed_alloc(hak_ctx *ctx, unsigned sc, size_t n, hak_label label);
/* For any class, when there is no other memory. NULL = none. */
void *hk_packed_last(hak_ctx *ctx, unsigned sc, size_t n, hak_label label);
/* Whether what is left of a small limit is for packed blocks, and no class gets its first slab. */
bool hk_packed_has_rest(const hak_ctx *ctx);
/* For a class that has slabs, if what is left of a limit is less than one slab more for each such class. NULL
 * = it is more, or no packed memory. */
void *hk_packed_beside_slabs(hak_ctx *ctx, unsigned sc, size_t n, hak_label label);
/* Frees p into the magazine of its class if that has one, else to the lists. Of a heap its own thread calls this,
 * under the lock. */
void hk_packed_free(hak_ctx *ctx, void *p);
/* Frees p to the lists. Of a heap any thread that has the lock calls this. */
void hk_packed_put_back(hak_ctx *ctx, void *p);
/* As hk_packed_free, for a block of the class of this bin, in the window of a context that nobody watches, where a
 * start is marked. */
void hk_packed_free_class(hak_ctx *ctx, void *p, const hk_bin *bin);
/* Whether a block, live or free, starts at p. */
bool hk_packed_start(const hak_ctx *ctx, const void *p);
/* Usable size; 0 = not the start of a live block. */
size_t hk_packed_size(const hak_ctx *ctx, const void *p);
/* Calls fn for each live block in packed units; false = stopped. */
bool hk_packed_visit(const hak_ctx *ctx, hak_visit_fn *fn, void *user);

#endif

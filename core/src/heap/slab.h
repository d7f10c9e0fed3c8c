/* Slabs: units cut into blocks of one class. A bitmap away from the blocks says which are free.
 *
 * `used` counts the blocks that are not in the bitmap. A slab is
 *   current   if refills of its bin come from it; trigger = never, or 0 in a class without magazine
 *   full      if it is in no list; the first free (trigger = blocks - 1) puts it at the end of the bin's list
 *   partial   if it is in the bin's list; the last free (trigger = 0) gives its units back to the space
 * A slab of a single block is never partial: the free of its block gives the slab back. Because each state
 * has one trigger, a free decrements `used` and compares it once. */
#ifndef HK_SLAB_H
#define HK_SLAB_H

#include "heap/account.h"
#include "heap/bits.h"
#include "heap/judge.h"
#include "heap/units.h"

#define HK_TRIGGER_NEVER UINT16_MAX

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

/* Puts a partial slab at the end of the list of its bin; takes it out. */
static inline void hk_slab_list(const hak_ctx *ctx, hk_bin *bin, hk_slab *s)
{
    hk_unit_id id = hk_slab_id(ctx->space, s);
    HK_ASSERT(s->used > 0 && s->used < hk_slab_capacity(ctx, s));
    HK_ASSERT(!bin->last == !bin->first && bin->last != id && bin->first != id);
    s->next = 0;
    s->prev = bin->last;
    if (bin->last) hk_slab_at(ctx->space, bin->last)->next = id;
    else bin->first = id;
    bin->last = id;
    s->trigger = 0;
}

static inline void hk_slab_unlist(const hak_ctx *ctx, hk_bin *bin, hk_slab *s)
{
    HK_ASSERT(hk_slab_id(ctx->space, s) == (s->prev ? hk_slab_at(ctx->space, s->prev)->next : bin->first));
    HK_ASSERT(hk_slab_id(ctx->space, s) == (s->next ? hk_slab_at(ctx->space, s->next)->prev : bin->last));
    if (s->prev) hk_slab_at(ctx->space, s->prev)->next = s->next;
    else bin->first = s->next;
    if (s->next) hk_slab_at(ctx->space, s->next)->prev = s->prev;
    else bin->last = s->prev;
}

/* Whether p lies in a slab of the kind. The block of a magazine may have been freed twice: the first time, its slab may
 * have gone back. */
HK_INLINE bool hk_slab_is_of(const hak_ctx *ctx, unsigned kind, const void *p)
{
    hk_extent *e;
    return HK_LIKELY(hk_kind_in_window(ctx, p) == kind) || hk_kind_at(ctx, p, &e) == kind;
}

/* After hk_slab_take_back(). */
HK_INLINE void hk_slab_count_down(hak_ctx *ctx, hk_slab *s, unsigned kind)
{
    HK_ASSERT(s->used > 0 && s->kind == kind);
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

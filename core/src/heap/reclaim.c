#include "heap/reclaim.h"

#include "heap/big_cache.h"
#include "heap/magazine.h"
#include "heap/row.h"
#include "heap/slab.h"

/* Whether the space has too few resident units, so that fresh pages would be used. */
static bool fresh_needed(const hak_ctx *ctx, size_t units)
{
    return (units > 1 || hk_aside_empty(&ctx->owned.aside)) && hk_get(&ctx->space->retained_units) < units;
}

static void before_fresh_pages(hak_ctx *ctx, size_t units, hk_want want)
{
    bool heap = HK_UNLIKELY(ctx->role == HK_HEAP) && want == HK_WANT_DIRTY;
    if (heap && fresh_needed(ctx, units)) ctx->member->recall(ctx);
    if (ctx->magazines.larger_kept && fresh_needed(ctx, units))
        hk_magazines_yield(ctx, units << HK_UNIT_SHIFT);
}

hk_slab *hk_units_take_as(hak_ctx *ctx, size_t units, unsigned kind, hk_want want, bool *zero)
{
    if (!hk_units_charge(ctx, kind, units)) return NULL;
    before_fresh_pages(ctx, units, want);
    return hk_units_take_charged(ctx, units, kind, want, zero);
}

/* Of the empty slabs only the current one of each class was kept. */
static void release_slabs(hak_ctx *ctx)
{
    for (unsigned sc = 0; sc < HK_SMALL_CLASSES && !hk_bins_none(ctx); sc++) {
        hk_slab *s = hk_bin_of(ctx, sc)->slab;
        if (!s || s->used) continue;
        hk_slab_leave(ctx, s);
        hk_units_give(ctx, s);
    }
}

#ifdef HAKMEM_ASSERT
bool hk_charged_right(hak_ctx *ctx)
{
    return ctx->checked & HK_GUARDED ||
           hk_get(&ctx->account.committed) == hk_units_charged(ctx) + hk_bigs_charged(ctx);
}
#endif

void hk_reclaim_empty(hak_ctx *ctx)
{
    HK_ASSERT(hk_charged_right(ctx));
    hk_rows_end(ctx);
    release_slabs(ctx);
    hk_space_take_back(ctx->space, &ctx->owned.aside);
    hk_big_purge(ctx);
    HK_ASSERT(hk_charged_right(ctx));
}

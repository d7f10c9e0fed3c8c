#include "heap/apply_heap.h"

#include "heap/big_cache.h"
#include "heap/magazine.h"
#include "heap/packed.h"
#include "heap/row.h"
#include "heap/run_magazine.h"

#define SET(name, in, none, ...) ctx->in = (__typeof__(ctx->in))hk_setting_kept(t->name, none);
#define SHOW(name, in, none, ...) t->name = hk_setting_shown(ctx->in, none);

void hk_heap_settings_set(hak_ctx *ctx, const hak_tuning *t)
{
    HK_SETTINGS(SET, HK_NOT_HERE, HK_NOT_HERE)
    /* A check sees each call. */
    if (ctx->debug & ~(HK_DEBUG_PROFILE | HAK_DEBUG_GUARD)) ctx->magazines.cap = 0;
    if (ctx->debug & HAK_DEBUG_GUARD) hk_drawing_of(ctx)->every = (uint32_t)t->guard_every;
}

void hk_heap_settings_get(const hak_ctx *ctx, hak_tuning *t)
{
    /* guard_every is kept with guard pages only. */
    *t = *hk_settings_default(HAK_MODE_BALANCED, HAK_WORKLOAD_TRACED);
    HK_SETTINGS(SHOW, HK_NOT_HERE, HK_NOT_HERE)
    t->packed_bytes = hk_setting_shown((size_t)ctx->packed.most << HK_UNIT_SHIFT, 0);
    t->first_offset = ctx->first_offset;
    if (ctx->debug & HAK_DEBUG_GUARD) t->guard_every = hk_drawing_of(ctx)->every;
    t->slab_sizes = hk_setting_shown(hk_packed_sizes(ctx, false), 0);
    hk_space_settings_get(ctx->space, t);
}

/* Whether the class has no magazine, so that its empty slabs go back at once. */
static bool returns(const hak_ctx *ctx, unsigned kind)
{
    return hk_kind_size(kind) > ctx->magazines.most;
}

static unsigned cap_of(const hak_ctx *ctx, unsigned kind)
{
    if (returns(ctx, kind)) return 0;
    return kind < HK_SMALL_CLASSES ? (unsigned)hk_min(hk_classes[kind].magazine, ctx->magazines.cap)
                                   : hk_run_magazine(ctx, kind);
}

/* The current slab of a class without magazine goes back when it is empty, at once if it is. */
static void slab_changes(hak_ctx *ctx, hk_bin *bin, unsigned kind)
{
    hk_slab *s = kind < HK_SMALL_CLASSES ? bin->slab : NULL;
    if (!s) return;
    bool back = returns(ctx, kind);
    s->trigger = back ? 0 : HK_TRIGGER_NEVER;
    if (back && s->used == 0) hk_slab_event(ctx, s, kind);
}

/* A magazine that is now too deep is made shallower, one that is shut for good opens. */
static void bin_changes(hak_ctx *ctx, hk_bin *bin, unsigned kind)
{
    unsigned most = returns(ctx, kind) ? 0 : hk_magazine_most(ctx, kind),
             cap = (unsigned)hk_min(bin->cap, most);
    if (bin->cap == 0) cap = cap_of(ctx, kind);
    if (cap == bin->cap && !bin->closed) return;
    hk_magazine_empty(ctx, bin);
    hk_row_end(ctx, bin);
    if (cap > bin->cap && cap > hk_row_of(bin)->room) {
        void **slots = hk_row_slots(ctx, kind, cap);
        if (!slots) return;
        bin->slots = slots;
    }
    if (cap < bin->cap) /* it may grow by as much again */
        ctx->magazines.grown -= (uint32_t)hk_min(ctx->magazines.grown, (bin->cap - cap) * hk_kind_size(kind));
    /* Empty, but not at its beginning, if it was empty before. */
    bin->top = bin->slots;
    hk_bin_lowest(bin);
    bin->cap = (uint8_t)cap;
    bin->closed = 0;
    bin->hi = bin->slots + cap;
    HK_ASSERT(hk_bin_sound(bin));
}

void hk_heap_settings_change(hak_ctx *ctx, const hak_tuning *t)
{
    size_t most = ctx->magazines.most;
    unsigned magazine = ctx->magazines.cap;
    hk_heap_settings_set(ctx, t);
    bool same = most == ctx->magazines.most && magazine == ctx->magazines.cap;
    if (!same && !hk_bins_none(ctx)) {
        hk_rows_end(ctx);
        for (unsigned kind = 0; kind < HK_BINS; kind++) {
            hk_bin *bin = hk_bin_of(ctx, kind);
            /* The magazines of a retired context are shut for good. */
            if (bin->slots && !ctx->retired) bin_changes(ctx, bin, kind);
            slab_changes(ctx, bin, kind);
        }
    }
    hk_packed_limit(ctx, hk_setting_kept(t->packed_bytes, 0));
    hk_big_shrink(ctx);
}

#include "heap/numbers.h"

#include "heap/big_cache.h"
#include "heap/magazine.h"
#include "heap/packed.h"
#include "heap/row.h"
#include "heap/run_magazine.h"

void hk_numbers_set(hak_ctx *ctx, const hak_tuning *t)
{
    /* A check sees each call. */
    ctx->magazines.cap =
        (uint8_t)(ctx->debug & ~(HK_DEBUG_PROFILE | HAK_DEBUG_GUARD) ? 0 : hk_or_none(t->magazine));
    ctx->magazines.most = (uint32_t)hk_or_none(t->magazine_most);
    ctx->big.cache = hk_or_none(t->big_cache);
    ctx->owned.aside.most = (uint8_t)hk_or_none(t->units_ahead);
    ctx->populate_from = (uint8_t)hk_min(t->populate_from, HK_POPULATE_NEVER);
    ctx->advice.expected = hk_or_none(t->expected_bytes);
    if (ctx->debug & HAK_DEBUG_GUARD) hk_drawing_of(ctx)->every = (uint32_t)t->guard_every;
}

static size_t none_or(size_t n)
{
    return n ? n : HAK_NONE;
}

/* A context without guard pages keeps no such number. */
static size_t guard_every(const hak_ctx *ctx)
{
    return ctx->debug & HAK_DEBUG_GUARD
               ? hk_drawing_of(ctx)->every
               : hk_tuning_preset(HAK_MODE_BALANCED, HAK_WORKLOAD_TRACED)->guard_every;
}

void hk_numbers_get(const hak_ctx *ctx, hak_tuning *t)
{
    *t = (hak_tuning){
        .size = sizeof *t,
        .magazine = none_or(ctx->magazines.cap),
        .magazine_most = none_or(ctx->magazines.most),
        .packed_bytes = none_or((size_t)ctx->packed.most << HK_UNIT_SHIFT),
        .first_offset = ctx->first_offset,
        .big_cache = none_or(ctx->big.cache),
        .units_ahead = none_or(ctx->owned.aside.most),
        .populate_from = ctx->populate_from == HK_POPULATE_NEVER ? HAK_NONE : ctx->populate_from,
        .expected_bytes = none_or(ctx->advice.expected),
        .guard_every = guard_every(ctx),
        .slab_sizes = none_or(hk_packed_sizes(ctx, false)),
    };
    hk_space_numbers(ctx->space, t);
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

void hk_numbers_change(hak_ctx *ctx, const hak_tuning *t)
{
    size_t most = ctx->magazines.most;
    unsigned magazine = ctx->magazines.cap;
    hk_numbers_set(ctx, t);
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
    hk_packed_limit(ctx, hk_or_none(t->packed_bytes));
    hk_big_shrink(ctx);
}

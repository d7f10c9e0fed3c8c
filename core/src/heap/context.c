#include "heap/context.h"

#include "heap/apply_heap.h"
#include "heap/guard.h"
#include "heap/hints.h"
#include "heap/packed.h"
#include "heap/placement.h"
#include "heap/row.h"

_Static_assert(sizeof(hak_ctx) <= 1600, "20 blocks and their context fit two pages");

enum {
    IMPLY_CHECK =
        HAK_DEBUG_POISON | HAK_DEBUG_CANARY | HAK_DEBUG_QUARANTINE | HAK_DEBUG_TRACE | HAK_DEBUG_RANDOM
};

static void set_options(hak_ctx *ctx, const hak_options *o)
{
    ctx->host.name = o->name ? o->name : "";
    ctx->host.user = o->user;
    ctx->labels.given = o->labels;
    ctx->labels.given_count = (uint16_t)o->label_count;
    ctx->labels.count = (uint16_t)o->label_count;
    ctx->labels.on = o->label_count > 0;
    ctx->host.on_error = o->on_error;
    ctx->host.error_user = o->error_user;
    ctx->debug = (uint8_t)(o->debug & IMPLY_CHECK ? o->debug | HAK_DEBUG_CHECK : o->debug);
    hk_heap_settings_set(ctx, o->tuning);
    ctx->first_offset = (uint8_t)o->tuning->first_offset;
    ctx->settings.workload = (uint8_t)o->workload;
    ctx->settings.mode = (uint8_t)o->mode;
    ctx->magazines.no_sweeps = o->workload != HAK_WORKLOAD_TRACED;
    ctx->max_align = o->max_align;
}

/* Under HAK_DEBUG_CHECK every call must be seen. */
size_t hk_packed_units(const hak_options *o, const hak_tuning *t)
{
    size_t bytes = t->packed_bytes;
    bool none = bytes == HAK_NONE || t->first_offset || o->debug & (HAK_DEBUG_CHECK | IMPLY_CHECK);
    return none ? 0 : (bytes + HK_UNIT - 1) >> HK_UNIT_SHIFT;
}

/* Whether a context can begin in this unit, which else goes back. */
HK_INLINE bool can_begin(hak_space *space, hk_unit_id id, bool labels)
{
    if (!id) return false;
    if (!(id >> HK_ID_BITS) && (!labels || hk_space_labels(space, id, HK_KIND_PACKED, 1) == 0)) return true;
    hk_space_give(space, id, 1);
    return false;
}

/* The same for a context with labels whose unit has no room for them in a caller's buffer. 0 = failed. */
static HK_COLD hk_unit_id take_first_owned(hak_space *space, hk_extent *near, bool *zero)
{
    hk_unit_id id = hk_space_take_owned(space, near, 1, HK_KIND_META, 0, zero);
    return can_begin(space, id, true) ? id : 0;
}

/* The first unit of a context, for which `bytes` are charged. 0 = failed. */
static hk_unit_id take_first(hak_space *space, hak_quota *quota, size_t bytes, bool labels, bool *zero)
{
    size_t ignored;
    if (!hk_quota_charge(quota, bytes, &ignored)) return 0;
    /* The numbers of units in further extents may be too large for the map. */
    uint32_t newest = atomic_load(&space->extents) - 1, i = newest;
    while (i && (hk_extent_number(space, i)->first + hk_extent_number(space, i)->units) >> HK_ID_BITS)
        i--;
    hk_extent *near = hk_extent_number(space, i);
    hk_want want = i == newest ? HK_WANT_DIRTY : HK_WANT_ANY;
    hk_unit_id id = hk_space_take(space, near, 1, HK_KIND_META, want, 0, zero);
    if (can_begin(space, id, labels)) return id;
    if (id && labels && !hk_extent_of_id(space, id)->owned) id = take_first_owned(space, near, zero);
    else id = 0;
    if (id) return id;
    hk_quota_refund(quota, bytes);
    return 0;
}

hak_ctx *hk_ctx_new(hak_space *space, const hak_options *o, size_t more)
{
    bool zero;
    /* A shared context has no blocks itself. */
    size_t most = hk_packed_units(o, o->tuning), units = o->shared ? 0 : most, first = HK_UNIT + HK_UNIT_META;
    if (units && o->label_count) first += hk_label_bytes(HK_KIND_PACKED, 1);
    hk_unit_id id = take_first(space, o->quota, first, units && o->label_count, &zero);
    if (!id) return NULL;
    hk_extent *e = hk_extent_of_id(space, id);
    hak_ctx *ctx = (hak_ctx *)(void *)hk_extent_address(e, id);
    size_t head = hk_align_up(sizeof *ctx, 64) + hk_align_up(more, 64);
    bool watched = o->debug & (IMPLY_CHECK | HAK_DEBUG_CHECK | HAK_DEBUG_GUARD);
    if (watched) head += hk_align_up(sizeof(hk_watch), 64);
    if (!zero) memset(ctx, 0, head);
    ctx->head = (uint16_t)head;
    if (watched) ctx->watch = (hk_watch *)((uintptr_t)ctx + head - hk_align_up(sizeof(hk_watch), 64));
    ctx->whole = ctx;
    ctx->space = space;
    ctx->extent = e;
    ctx->base = e->base;
    ctx->units = hk_extent_reach(e);
    ctx->map = e->map;
    ctx->owned.id = id;
    ctx->key = id << 8;
    ctx->bins = (hk_bin *)(uintptr_t)(o->max_align ? hk_no_bins_with[HK_MAX_ALIGNED].bins
                                                   : hk_no_bins_with[HK_FINE].bins);
    ctx->account.quota = o->quota;
    set_options(ctx, o);
    hk_set(&ctx->account.committed, first);
    ctx->checked = ctx->debug & HAK_DEBUG_CHECK ? HK_CHECKED : 0;
    if (ctx->debug & HAK_DEBUG_TRACE) ctx->checked |= HK_TRACED;
    if (ctx->debug & HAK_DEBUG_GUARD) {
        ctx->checked |= HK_GUARDED;
        hk_guard_begin(ctx);
    }
    if (o->debug & HAK_DEBUG_RANDOM) hk_placement_begin(ctx, o->seed);
    if (ctx->debug & HAK_DEBUG_CANARY)
        ctx->watch->canary =
            ((uintptr_t)ctx ^ space->os.clock(space->os.user) << 20) * UINT64_C(0xBF58476D1CE4E5B9);
    ctx->packed.most = (uint16_t)most;
    hk_set(&ctx->account.metadata,
           first - HK_UNIT + (units ? head + HK_PACKED_HEAD + HK_PACKED_TABLES + HK_BESIDE : HK_UNIT));
    hk_write(&e->map[id - e->first], ctx->key | (units ? HK_KIND_PACKED : HK_KIND_META));
    hk_extent_slab(e, id - e->first)->head = 0; /* a group of packed units begins here */
    if (units) {
        hk_packed_init(ctx);
    } else {
        ctx->meta.at = (char *)ctx + ctx->head;
        ctx->meta.end = (char *)ctx + HK_UNIT - HK_BESIDE;
    }
    if (most) hk_packed_skip(ctx, hk_setting_kept(o->tuning->slab_sizes, 0));
    return ctx;
}

void hk_ctx_end(hak_ctx *ctx)
{
    hak_space *space = ctx->space;
    HK_ASSERT(!ctx->big.live && !ctx->big.cached && hk_get(&ctx->account.committed) == hk_units_charged(ctx));
    hk_rows_wipe(ctx);
    HK_EACH_OWNED(ctx, s)
    {
        hk_slab_wipe(ctx, s);
    }
    hk_hints_end(ctx);
    hk_space_take_back(space, &ctx->owned.aside);
    hk_unit_id all = ctx->owned.all;
    bool labelled = ctx->labels.on && ctx->role != HK_HEAP;
    hk_space_give(space, ctx->owned.id, 1);
    hk_space_give_all(space, all);
    if (labelled) hk_space_labels_end(space);
}

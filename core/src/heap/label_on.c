#include "heap/label_on.h"

#include "heap/batch.h"
#include "heap/label.h"
#include "heap/packed_quick.h"

/* What the label bytes of existing slabs and runs will be charged. */
static size_t missing(hak_ctx *ctx)
{
    size_t bytes =
        ctx->packed.units ? hk_label_bytes(HK_KIND_PACKED, 1) : 0; /* its first unit is in no list */
    HK_EACH_OWNED(ctx, s)
    {
        bytes += hk_label_bytes(s->kind, s->units);
    }
    return bytes;
}

/* Label bytes of existing slabs and runs are stale: a former owner of the units wrote them. */
static bool clear_units(hak_ctx *ctx, hk_unit_id id, unsigned kind, size_t units)
{
    if (hk_space_labels(ctx->space, id, kind, units) != 0) return false;
    hk_extent *e = hk_extent_of_id(ctx->space, id);
    memset(hk_label_byte(e, kind, hk_extent_address(e, id)), 0, hk_label_bytes(kind, units));
    return true;
}

static bool clear_all(hak_ctx *ctx)
{
    if (ctx->packed.units && !clear_units(ctx, ctx->owned.id, HK_KIND_PACKED, 1)) return false;
    HK_EACH_OWNED(ctx, s)
    {
        if (hk_has_labels(s->kind) && !clear_units(ctx, hk_slab_id(ctx->space, s), s->kind, s->units))
            return false;
    }
    return true;
}

void hk_labels_uncharge(hak_ctx *ctx)
{
    size_t bytes = missing(ctx);
    HK_ASSERT(hk_get(&ctx->account.metadata) >= bytes);
    hk_sub(&ctx->account.metadata, bytes);
    hk_uncharge(ctx, bytes);
}

bool hk_labels_charge(hak_ctx *ctx)
{
    hk_space_take_back(ctx->space, &ctx->owned.aside); /* label bytes may go there */
    size_t bytes = missing(ctx);
    if (!hk_reclaim_charge(ctx, bytes)) return false;
    hk_add(&ctx->account.metadata, bytes);
    if (clear_all(ctx)) return true;
    hk_labels_uncharge(ctx);
    return false;
}

void hk_labels_use(hak_ctx *ctx)
{
    ctx->labels.on = true;
    hk_packed_quicken(ctx);
    /* Most contexts define their labels before the first bin. */
    unsigned bins = hk_bins_none(ctx) ? 0 : HK_BINS;
    for (unsigned kind = 0; kind < bins; kind++) {
        hk_bin *bin = hk_bin_of(ctx, kind);
        if (!bin->slots) continue;
        HK_ASSERT(bin->kind == kind);
        bool packed = kind < HK_SMALL_CLASSES && hk_packed_keeps(ctx, kind);
        uint8_t *labels = packed ? hk_packed_labels_of(ctx, kind) : hk_labels_of(ctx, hk_area_of(kind));
        if (!labels) {
            hk_bin_shut(bin, HK_SHUT_EVER);
            __atomic_store_n(&bin->lo, HK_SHUT_EVER, __ATOMIC_RELAXED); /* also if a profile has shut it */
        }
        /* Its thread may be on the fast path. */
        __atomic_store_n(&bin->labels, labels, __ATOMIC_RELEASE);
    }
    hk_batches_label(ctx);
}

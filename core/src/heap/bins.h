/* The bins of a context: the constant ones until its first class gets a slab, then its own; and the table of
 * classes in front of them. */
#ifndef HK_BINS_H
#define HK_BINS_H

#include "heap/ctx.h"

/* Whether the bins are the constant ones. */
HK_INLINE bool hk_bins_none(const hak_ctx *ctx)
{
    return (uintptr_t)ctx->bins - (uintptr_t)hk_no_bins_with < sizeof hk_no_bins_with;
}

/* What goes into bin->labels for blocks of this area. */
HK_INLINE uint8_t *hk_labels_of(const hak_ctx *ctx, unsigned area)
{
    return ctx->labels.on ? ctx->extent->labels[area] : NULL;
}

HK_INLINE hk_bin *hk_bin_of(hak_ctx *ctx, unsigned kind)
{
    return &ctx->bins[kind];
}

/* Its bins, those of batches included; see batch.h. These come after the others. Before ctx->bins is read,
 * which are another place before there are batches: the caller may be another thread. */
HK_INLINE unsigned hk_bins_all(const hak_ctx *ctx)
{
    bool batches = __atomic_load_n(&ctx->sampling.batches, __ATOMIC_ACQUIRE) != HK_BATCHES_NONE;
    return batches ? HK_BINS + HK_KIB_CLASSES : HK_BINS;
}

/* The number of the bin from which a size up to 1024 is allocated: its class, or its class + HK_BINS while
 * batches are used (batch.h). */
HK_INLINE unsigned hk_bin_in(const hak_ctx *ctx, size_t n)
{
    return ((const uint8_t *)ctx->bins - HK_BINS_TABLE)[(n + 7) >> 3];
}

HK_INLINE unsigned hk_class_in(const hak_ctx *ctx, size_t n)
{
    unsigned bin = hk_bin_in(ctx, n);
    return HK_LIKELY(bin < HK_BINS) ? bin : bin - HK_BINS;
}

/* Where a magazine has packed blocks, bin->closed counts frees from here up, and the class leaves at 0. No
 * magazine of slabs is closed for so many frees. */
enum { HK_KEPT_FIRST = UINT16_MAX - 319 };

/* Whether the class's bin keeps packed blocks at hand. */
HK_INLINE bool hk_packed_keeps(const hak_ctx *ctx, unsigned sc)
{
    return ctx->packed.kept[sc / 64] >> (sc % 64) & 1;
}

#endif

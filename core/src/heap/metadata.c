#include "heap/metadata.h"

void hk_bins_widen(hak_ctx *ctx)
{
    if (!ctx->max_align) ctx->bins = (hk_bin *)(uintptr_t)hk_no_bins_with[HK_WIDE].bins;
}

/* Bins of blocks up to 256 bytes share a page with the first few magazines: a small heap touches that page
 * only. What lies behind the bins shares no page with bins of blocks above 2 KiB. */
enum {
    BINS_AT = HK_PAGE / 2,
    TABLE_AT = BINS_AT - HK_BINS_TABLE,
    BEHIND_BINS = (BINS_AT + sizeof(hk_bin) * HK_BINS + HK_PAGE - 1) & ~(HK_PAGE - 1)
};
_Static_assert((size_t)BEHIND_BINS < HK_UNIT, "bins fit into a unit");

hk_slab *hk_meta_units(hak_ctx *ctx, size_t n, bool *zero)
{
    size_t units = hk_meta_units_for(n);
    return units <= HK_CHUNK_UNITS ? hk_units_take_own(ctx, units, zero) : NULL;
}

static bool meta_room(const hak_ctx *ctx, size_t n)
{
    return (size_t)(ctx->meta.end - ctx->meta.at) >= n;
}

void *hk_meta_alloc(hak_ctx *ctx, size_t n)
{
    n = hk_align_up(n, 16);
    /* Other threads read the bins of a shared context without a lock: they must stay where they are. */
    if (!meta_room(ctx, n) && ctx->role != HK_SHARED && !hk_bins_make(ctx)) return NULL;
    if (!meta_room(ctx, n) && ctx->meta.end == (char *)ctx->bins - HK_BINS_TABLE) {
        char *unit = (char *)ctx->bins - BINS_AT;
        ctx->meta.at = unit + BEHIND_BINS + HK_BESIDE;
        ctx->meta.end = unit + HK_UNIT - HK_BESIDE;
    }
    if (!meta_room(ctx, n)) {
        bool zero;
        hk_slab *s = hk_meta_units(ctx, n, &zero);
        if (!s) return NULL;
        ctx->meta.at = hk_meta_start(ctx, s);
        ctx->meta.end = ctx->meta.at + hk_meta_bytes(s);
    }
    HK_ASSERT((uintptr_t)ctx->meta.at % 16 == 0);
    return hk_meta_quick(ctx, n);
}

bool hk_bins_make(hak_ctx *ctx)
{
    if (!hk_bins_none(ctx)) return true;
    bool zero;
    hk_slab *s = hk_units_take_own(ctx, 1, &zero);
    if (!s) return false;
    char *unit = hk_slab_address(ctx->space, s);
    HK_ASSERT(s->units == 1 && s->kind == HK_KIND_META);
    memcpy(unit + TABLE_AT, (const char *)ctx->bins - HK_BINS_TABLE, HK_BINS_TABLE);
    ctx->bins = (hk_bin *)(void *)(unit + BINS_AT);
    /* In pieces, and the last one is shorter: for so many bytes at once memset takes a string instruction, which callgrind
     * counts step by step. */
    enum { PIECE = 1536, ALL = sizeof(hk_bin) * HK_BINS };
    for (size_t at = 0; !zero && at < ALL; at += PIECE)
        memset((char *)ctx->bins + at, 0, hk_min(PIECE, ALL - at));
    if (!meta_room(ctx, TABLE_AT - HK_BESIDE)) {
        ctx->meta.at = unit + HK_BESIDE;
        ctx->meta.end = unit + TABLE_AT;
    }
    return true;
}

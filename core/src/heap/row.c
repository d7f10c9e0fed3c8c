#include "heap/row.h"

/* Newton's way: an odd number is its own inverse modulo 8, and each step doubles the bits. */
static uint64_t inverse_of(uint64_t odd)
{
    uint64_t x = odd;
    for (unsigned bits = 3; bits < 64; bits *= 2)
        x *= 2 - odd * x;
    return x;
}

void **hk_row_slots(hak_ctx *ctx, unsigned kind, unsigned n)
{
    hk_row *row = hk_meta_alloc(ctx, sizeof *row + n * sizeof(void *));
    if (!row) return NULL;
    *row = (hk_row){.room = (uint8_t)n};
    if (kind < HK_KIB_CLASSES) {
        unsigned size = hk_classes[kind].size;
        row->turn = (uint8_t)__builtin_ctz(size);
        row->inverse = inverse_of(size >> row->turn);
    }
    return (void **)(void *)(row + 1);
}

HK_INLINE hk_slab *slab_of(const hak_ctx *ctx, const hk_row *row)
{
    return hk_extent_slab(ctx->extent, hk_row_unit(ctx, row));
}

/* The blocks that were freed since the row was last counted. */
HK_INLINE void count_row(hak_ctx *ctx, hk_bin *bin, hk_row *row)
{
    unsigned kind = bin->kind, n = hk_bits(*row->word & ~row->before);
    if (!n) return;
    hk_slab *s = slab_of(ctx, row);
    unsigned used = s->used, left = used - n;
    HK_ASSERT(s->kind == kind && n <= used && !(row->before & ~*row->word));
    row->before = *row->word;
    hk_count_out(ctx, n * (size_t)hk_classes[kind].size, n);
    s->used = (uint16_t)left;
    if (bin->closed <= n) {
        bin->closed = 0;
        bin->hi = bin->slots + bin->cap;
        row->blocks = 0;
    } else {
        bin->closed = (uint16_t)(bin->closed - n);
    }
    if (HK_UNLIKELY(left <= s->trigger && used > s->trigger)) hk_slab_event(ctx, s, kind);
}

void hk_row_settle_now(hak_ctx *ctx, hk_bin *bin)
{
    count_row(ctx, bin, hk_row_of(bin));
}

void hk_slab_free(hak_ctx *ctx, hk_extent *e, unsigned kind, void *p)
{
    if (e == ctx->extent) hk_row_end(ctx, hk_bin_of(ctx, kind));
    hk_slab_put_found(ctx, e, kind, p);
}

void hk_row_next(hak_ctx *ctx, hk_bin *bin, void *p)
{
    hk_row *row = hk_row_of(bin);
    unsigned kind = bin->kind;
    if (row->blocks) {
        count_row(ctx, bin, row);
        row->blocks = 0;
    }
    /* Its slab may have been empty, but not counted yet. */
    if (HK_UNLIKELY(!hk_slab_is_of(ctx, kind, p))) {
        hk_found_wrong(ctx, HK_WRONG_BLOCK, p);
        return;
    }
    hk_place at = hk_place_of(ctx, ctx->extent, kind, p);
    uint32_t i = hk_slab_number(kind, (uint32_t)((uintptr_t)p - at.first)), from = i & ~63u;
    if (HK_UNLIKELY(i >= at.slab->fresh || !bin->closed)) {
        hk_slab_put_back(ctx, ctx->extent, kind, p);
        return;
    }
    uint64_t *word = at.bits + i / 64, bit = UINT64_C(1) << (i % 64), w = *word;
    if (HK_UNLIKELY(w & bit)) {
        hk_found_wrong(ctx, HK_WRONG_BLOCK, p);
        return;
    }
    *word = w | bit;
    row->first = at.first + from * (size_t)hk_classes[kind].size;
    row->blocks = hk_min(at.slab->fresh - from, 64);
    row->word = word;
    row->before = w;
    ctx->magazines.swept = true;
}

/* Those with slots may have a row. */
#define EACH_ROW(ctx, bin)                                                                                   \
    if ((ctx)->magazines.swept)                                                                              \
        for (hk_bin *bin = (ctx)->bins; bin < (ctx)->bins + HK_KIB_CLASSES; bin++)                           \
            if (bin->slots)

void hk_rows_settle(const hak_ctx *ctx)
{
    /* The counts come out the same: only the moment of counting changes. */
    hak_ctx *mine = (hak_ctx *)(uintptr_t)ctx;
    EACH_ROW(mine, bin)
    hk_row_settle(mine, bin);
}

void hk_rows_end(hak_ctx *ctx)
{
    EACH_ROW(ctx, bin)
    hk_row_end(ctx, bin);
}

void hk_rows_wipe(hak_ctx *ctx)
{
    EACH_ROW(ctx, bin)
    if (hk_row_of(bin)->blocks) *hk_row_of(bin)->word = 0;
}

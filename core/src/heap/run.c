#include "heap/run.h"

#include "heap/label.h"
#include "heap/reclaim.h"

void *hk_run_alloc(hak_ctx *ctx, size_t n, hak_label label, bool *zero)
{
    unsigned sc = hk_run_class((n + HK_UNIT - 1) >> HK_UNIT_SHIFT), kind = HK_SMALL_CLASSES + sc;
    hk_bin *bin = hk_bin_of(ctx, kind);
    void *p;
    *zero = false;
    if (bin->top > hk_bin_low(bin)) {
        p = *--bin->top;
    } else {
        hk_slab *s = hk_units_take(ctx, hk_run_units(sc), kind, zero);
        if (!s) return NULL;
        HK_ASSERT(s->units == hk_run_units(sc) && s->kind == kind);
        s->used = 1;
        if (bin->slots) bin->swings |= HK_EMPTIED;
        p = hk_slab_address(ctx->space, s);
        hk_count_in(ctx, (size_t)s->units << HK_UNIT_SHIFT, 1);
    }
    if (ctx->labels.on) hk_label_set(hk_extent_of(ctx->space, p), kind, p, label);
    return p;
}

bool hk_run_resize(hak_ctx *ctx, hk_extent *e, void *p, size_t n)
{
    hk_slab *s = hk_run_slab(e, p);
    if (s->head || hk_slab_start(e, s) != p) return false;
    unsigned sc = hk_run_class((n + HK_UNIT - 1) >> HK_UNIT_SHIFT);
    size_t units = hk_run_units(sc), old = s->units;
    unsigned kind = HK_SMALL_CLASSES + sc;
    if (units < old) {
        hk_units_shorten(ctx, s, units);
    } else if (units > old && !hk_units_lengthen(ctx, s, units)) {
        return false;
    }
    size_t unit = hk_extent_unit(e, s);
    HK_ASSERT(s->units == units && s->used == 1);
    s->kind = (uint8_t)kind;
    bool watched = (hk_read(&e->map[unit]) & HK_KIND_MASK) == HK_KIND_WATCHED;
    for (size_t i = 0; i < units; i++)
        hk_write(&e->map[unit + i], ctx->key | kind);
    /* Anew, so that a profile that ends meanwhile does not write the kind of before. */
    if (watched) hk_unit_watch(ctx, p, true);
    hk_count_out(ctx, old << HK_UNIT_SHIFT, 1);
    hk_count_in(ctx, units << HK_UNIT_SHIFT, 1);
    return true;
}

void *hk_run_move(hak_ctx *ctx, hk_extent *e, void *p, size_t n)
{
    hk_slab *s = hk_run_slab(e, p);
    if (ctx->role != HK_LOCAL || n > HK_RUN_MAX || s->head || s->used == 0 || hk_slab_start(e, s) != p)
        return NULL;
    unsigned sc = hk_run_class((n + HK_UNIT - 1) >> HK_UNIT_SHIFT), kind = HK_SMALL_CLASSES + sc;
    size_t units = hk_run_units(sc), old = s->units;
    if (units <= old) return NULL;
    hk_slab *to = hk_units_take_ahead(ctx, units, (old - 1) << HK_UNIT_SHIFT, kind);
    if (!to) return NULL;
    to->used = 1;
    char *q = hk_slab_address(ctx->space, to);
    if (ctx->labels.on) hk_label_set(hk_extent_of(ctx->space, q), kind, q, *hk_label_byte(e, s->kind, p));
    for (size_t left = old; left-- > 0;) {
        memcpy(q + (left << HK_UNIT_SHIFT), (char *)p + (left << HK_UNIT_SHIFT), HK_UNIT);
        if (left) hk_units_hand_over(ctx, s);
    }
    hk_count_out(ctx, old << HK_UNIT_SHIFT, 1);
    hk_count_in(ctx, units << HK_UNIT_SHIFT, 1);
    s->used = 0;
    hk_units_give(ctx, s);
    return q;
}

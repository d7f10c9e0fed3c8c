#include "heap/run.h"
#include "heap/magazine.h"

#include "heap/label.h"
#include "heap/row.h"
#include "heap/slab.h"

enum { HOT = 16 };

/* Runs kept at hand by a class: 128 KiB, one at least. */
unsigned hk_run_magazine(const hak_ctx *ctx, unsigned kind)
{
    unsigned n = 8 / hk_run_units(kind - HK_SMALL_CLASSES);
    return (unsigned)hk_min(n ? n : 1, ctx->magazines.cap);
}

/* Runs of all sizes come and go in a large heap, and a few at hand in each class are a good part of it. */
bool hk_run_keep_more(hak_ctx *ctx, size_t more)
{
    enum { LEAST = 2 << 20, LIVE_SHIFT = 5 };
    size_t kept = more, most = LEAST + (hk_get(&ctx->live_bytes) >> LIVE_SHIFT);
    for (unsigned kind = HK_SMALL_CLASSES; kind < HK_BINS; kind++)
        kept += hk_bin_of(ctx, kind)->cap * hk_kind_size(kind);
    return kept <= most;
}

/* A class whose runs come and go gets a magazine, so that they pass through the fast paths. */
static void open_magazine(hak_ctx *ctx, unsigned kind)
{
    if (!hk_bins_make(ctx)) return;
    hk_bin *bin = hk_bin_of(ctx, kind);
    if (bin->slots || ctx->checked & HK_CHECKED || ctx->magazines.cap == 0 ||
        hk_kind_size(kind) > ctx->magazines.most)
        return;
    if (bin->heat < HOT) {
        bin->heat++;
        return;
    }
    bin->heat = 0;
    unsigned cap = hk_run_magazine(ctx, kind);
    if (!hk_run_keep_more(ctx, cap * hk_kind_size(kind))) return;
    void **slots = hk_row_slots(ctx, kind, cap);
    if (!slots) return;
    hk_magazine_set(ctx, bin, slots, cap, kind, HK_UNIT_SHIFT, hk_labels_of(ctx, HK_AREA_RUN));
    ctx->magazines.larger_kept = true;
}

static hk_slab *slab_of(hk_extent *e, const void *p)
{
    return hk_extent_slab(e, ((uintptr_t)p - e->base) >> HK_UNIT_SHIFT);
}

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
        s->used = 1;
        if (bin->slots) bin->swings |= HK_EMPTIED;
        p = hk_slab_address(ctx->space, s);
        hk_count_in(ctx, (size_t)s->units << HK_UNIT_SHIFT, 1);
    }
    if (ctx->labels.on) hk_label_set(hk_extent_of(ctx->space, p), kind, p, label);
    return p;
}

static void give(hak_ctx *ctx, hk_extent *e, void *p)
{
    hk_slab *s = slab_of(e, p);
    if (s->head || s->used == 0 || hk_slab_start(e, s) != p) {
        hk_found_wrong(ctx, HK_WRONG_BLOCK, p);
        return;
    }
    hk_count_out(ctx, (size_t)s->units << HK_UNIT_SHIFT, 1);
    s->used = 0;
    hk_units_give(ctx, s);
}

void hk_run_give(hak_ctx *ctx, void *p)
{
    hk_extent *e;
    uint32_t kind = hk_kind_at(ctx, p, &e);
    if (kind >= HK_SMALL_CLASSES && kind < HK_BINS) give(ctx, e, p);
    else hk_found_wrong(ctx, HK_WRONG_BLOCK, p);
}

void hk_run_free(hak_ctx *ctx, hk_extent *e, unsigned kind, void *p)
{
    hk_bin *bin = hk_bin_of(ctx, kind);
    hk_slab *s = slab_of(e, p);
    if (e == ctx->extent && bin->cap && s->head == 0 && hk_slab_start(e, s) == p) {
        hk_magazine_grow(ctx, bin);
        if (bin->top == bin->hi) hk_magazine_flush(ctx, bin, 1);
        *bin->top++ = p;
        return;
    }
    open_magazine(ctx, kind);
    give(ctx, e, p);
}

bool hk_run_resize(hak_ctx *ctx, hk_extent *e, void *p, size_t n)
{
    hk_slab *s = slab_of(e, p);
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

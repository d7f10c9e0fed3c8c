#include "heap/run_magazine.h"

#include "heap/magazine.h"
#include "heap/put.h"
#include "heap/row.h"

enum { HOT = 16 };

/* Runs kept at hand by a class: 128 KiB, one at least. */
unsigned hk_run_magazine(const hak_ctx *ctx, unsigned kind)
{
    unsigned n = 8 / hk_run_units(kind - HK_SMALL_CLASSES);
    return (unsigned)hk_min(n ? n : 1, ctx->magazines.cap);
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

void hk_run_free(hak_ctx *ctx, hk_extent *e, unsigned kind, void *p)
{
    hk_bin *bin = hk_bin_of(ctx, kind);
    hk_slab *s = hk_run_slab(e, p);
    if (e == ctx->extent && bin->cap && s->head == 0 && hk_slab_start(e, s) == p) {
        hk_magazine_grow(ctx, bin);
        if (bin->top == bin->hi) hk_magazine_flush(ctx, bin, 1);
        HK_ASSERT(bin->kind == kind && bin->top < bin->slots + bin->cap);
        *bin->top++ = p;
        return;
    }
    open_magazine(ctx, kind);
    hk_run_put(ctx, e, p);
}

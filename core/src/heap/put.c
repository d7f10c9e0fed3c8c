#include "heap/put.h"

#include "heap/judge.h"
#include "heap/packed_group.h"

void hk_packed_put(hak_ctx *ctx, void *p)
{
    hk_extent *e;
    if (hk_kind_at(ctx, p, &e) == HK_KIND_PACKED) {
        hk_group g = hk_group_of(ctx, p);
        size_t size = hk_packed_size_in(ctx, g, p);
        if (size) {
            hk_packed_put_in(ctx, g, p, hk_class_of(size), size);
            if (ctx->role == HK_HEAP) ctx->packed.blocks--;
            return;
        }
    }
    hk_found_wrong(ctx, HK_WRONG_BLOCK, p);
}

void hk_run_put(hak_ctx *ctx, hk_extent *e, void *p)
{
    hk_slab *s = hk_run_slab(e, p);
    if (s->head || s->used == 0 || hk_slab_start(e, s) != p) {
        hk_found_wrong(ctx, HK_WRONG_BLOCK, p);
        return;
    }
    HK_ASSERT(s->used == 1 && hk_kind_size(s->kind) == (size_t)s->units << HK_UNIT_SHIFT);
    hk_count_out(ctx, (size_t)s->units << HK_UNIT_SHIFT, 1);
    s->used = 0;
    hk_units_give(ctx, s);
}

void hk_run_give(hak_ctx *ctx, void *p)
{
    hk_extent *e;
    uint32_t kind = hk_kind_at(ctx, p, &e);
    if (kind >= HK_SMALL_CLASSES && kind < HK_BINS) hk_run_put(ctx, e, p);
    else hk_found_wrong(ctx, HK_WRONG_BLOCK, p);
}

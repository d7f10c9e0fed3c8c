/* Free memory between live blocks: how much there is by size class, and which blocks hold it. */
#include "heap/holes.h"

#include "heap/batch.h"
#include "heap/row.h"
#include "shared/thread_heap.h"

size_t hak_block_pins(const hak_ctx *ctx, const void *p)
{
    return (size_t)hk_block_pins(ctx, p);
}

typedef struct hole_sums {
    hak_class_info of[HK_SMALL_CLASSES];
} hole_sums;

HK_RACY static void count_holes(hak_ctx *ctx, hk_slab *s, void *user)
{
    hole_sums *t = user;
    if (s->kind >= HK_SMALL_CLASSES || s->used == 0) return;
    hk_holes holes = hk_slab_holes(ctx, hk_extent_of_slab(ctx->space, s), s);
    hak_class_info *c = &t->of[s->kind];
    c->block_bytes = hk_classes[s->kind].size;
    c->blocks += s->used;
    c->free_bytes += holes.free;
    c->pinned_bytes += holes.pinned;
}

static void sum_holes(hak_ctx *whole, hole_sums *t)
{
    memset(t, 0, sizeof *t);
    if (!whole->heaps) {
        hk_rows_settle(whole);
        hk_batches_return(whole);
    }
    hk_walk(whole, count_holes, t);
}

int hak_classes_stats(const hak_ctx *ctx, hak_class_info *out, size_t count)
{
    hole_sums t;
    size_t n = 0;
    sum_holes((hak_ctx *)(uintptr_t)hk_whole(ctx), &t);
    for (unsigned sc = 0; sc < HK_SMALL_CLASSES; sc++) {
        if (t.of[sc].block_bytes == 0) continue;
        if (n < count) out[n] = t.of[sc];
        n++;
    }
    return (int)n;
}

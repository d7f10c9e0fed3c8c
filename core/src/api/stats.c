/* What a context tells about itself: pointers, sums, every block. */
#include "heap/batch.h"
#include "heap/big.h"
#include "heap/canary.h"
#include "heap/label.h"
#include "heap/magazine.h"
#include "heap/packed.h"
#include "heap/row.h"
#include "heap/slab.h"
#include "shared/remote.h"
#include "shared/thread_heap.h"
#include "space/apart.h"

size_t hak_usable_size(const hak_ctx *ctx, const void *p)
{
    size_t size = hk_block_size(ctx, p);
    return HK_LIKELY(!(ctx->debug & (HAK_DEBUG_CANARY | HAK_DEBUG_QUARANTINE)))
               ? size
               : hk_canary_usable(ctx, p, size);
}

size_t hak_block_size(const hak_ctx *ctx, const void *p)
{
    uint32_t kind = hk_kind_in_window(ctx, p);
    return HK_LIKELY(kind < HK_SMALL_CLASSES) ? hk_classes[kind].size : hk_block_size(ctx, p);
}

bool hak_owns(const hak_ctx *ctx, const void *p)
{
    return hk_owns(ctx, p);
}

hak_space *hak_ctx_space(const hak_ctx *ctx)
{
    return ctx->space;
}

/* Of an extent that grows nobody else has the addresses, mapped or not. */
size_t hak_space_bytes_within(hak_space *space, const void *p, size_t n)
{
    uintptr_t from = (uintptr_t)p, to = from + hk_min(n, UINTPTR_MAX - from);
    size_t sum = hk_big_bytes_within(space, from, to) + hk_apart_bytes_within(space, from, to);
    for (uint32_t i = 0, all = atomic_load_explicit(&space->extents, memory_order_acquire); i < all; i++) {
        const hk_extent *e = hk_extent_number(space, i);
        sum += hk_bytes_within((uintptr_t)e->reserved, e->reserved_size, from, to);
    }
    return sum;
}

hak_ctx *hak_ctx_of(const hak_space *space, const void *p)
{
    const hak_ctx *owner = hk_block_owner(space, p);
    return owner ? hk_whole(owner) : NULL;
}

void hak_space_free(hak_space *space, void *p)
{
    hak_ctx *ctx = hak_ctx_of(space, p);
    if (ctx) hak_free(ctx, p);
}

/* Sums over the heaps of a shared context, beside their threads: exact when all are at rest. */
typedef struct sums {
    size_t live_bytes, live_blocks, spare_bytes, spare_blocks, metadata, released, big_bytes, big_blocks;
    uint64_t failures;
} sums;

static size_t not_below_zero(size_t n)
{
    return (ptrdiff_t)n < 0 ? 0 : n;
}

/* What this heap's thread freed of other heaps, less what came home to this heap. Summed over all heaps, it
 * is what was freed and is still under way. */
static void under_way(const hak_ctx *heap, size_t *bytes, size_t *blocks)
{
    const hk_heap *h = heap->heap;
    hk_remote_held(heap, bytes, blocks);
    *bytes += hk_get(&h->out_bytes) - hk_get(&h->in_bytes);
    *blocks += hk_get(&h->out_blocks) - hk_get(&h->in_blocks);
}

static void add(sums *t, const hak_ctx *ctx)
{
    size_t spare_bytes, spare_blocks;
    hk_magazines_sum(ctx, &spare_bytes, &spare_blocks);
    t->spare_bytes += spare_bytes;
    t->spare_blocks += spare_blocks;
    t->live_bytes += hk_get(&ctx->live_bytes);
    t->live_blocks += hk_get(&ctx->live_blocks);
    t->metadata += hk_get(&ctx->account.metadata);
    t->released += hk_get(&ctx->account.released);
    t->big_bytes += hk_get(&ctx->big.bytes);
    t->big_blocks += hk_get(&ctx->big.blocks);
    t->failures += hk_get(&ctx->account.failures);
    if (ctx->role != HK_HEAP) return;
    under_way(ctx, &spare_bytes, &spare_blocks);
    t->spare_bytes += spare_bytes;
    t->spare_blocks += spare_blocks;
}

static sums sum(const hak_ctx *whole)
{
    sums t = {0};
    add(&t, whole);
    for (hak_ctx *heap = whole->heaps ? hk_heaps_first(whole) : NULL; heap; heap = heap->heap->next)
        add(&t, heap);
    t.live_bytes = not_below_zero(t.live_bytes - t.spare_bytes);
    t.live_blocks = not_below_zero(t.live_blocks - t.spare_blocks);
    return t;
}

size_t hak_ctx_live_bytes(const hak_ctx *ctx)
{
    const hak_ctx *whole = hk_whole(ctx);
    if (!whole->heaps) return hk_get(&ctx->live_bytes);
    size_t live = 0;
    for (const hak_ctx *heap = hk_heaps_first(whole); heap; heap = heap->heap->next) {
        size_t bytes, blocks;
        under_way(heap, &bytes, &blocks);
        live += hk_get(&heap->live_bytes) - bytes;
    }
    return not_below_zero(live);
}

int hak_ctx_stats(const hak_ctx *ctx, hak_stats *out)
{
    if (!hk_sized_fits(out->size, sizeof *out)) return -1;
    ctx = hk_whole(ctx);
    hk_rows_settle(ctx);
    hk_heaps *heaps = ctx->heaps;
    sums t = sum(ctx);
    hak_stats s = {0};
    s.live_bytes = t.live_bytes;
    s.live_blocks = t.live_blocks;
    s.peak_bytes = hk_max(hk_peak_bytes(ctx), s.live_bytes);
    s.committed_bytes = heaps ? atomic_load(&heaps->account.used) : hk_get(&ctx->account.committed);
    s.metadata_bytes = t.metadata;
    s.cached_bytes = not_below_zero(s.committed_bytes - s.live_bytes - s.metadata_bytes);
    s.released_bytes = t.released;
    s.reserved_bytes = hk_get(&ctx->space->reserved_bytes);
    s.retained_bytes = hk_get(&ctx->space->retained_units) << HK_UNIT_SHIFT;
    s.big_bytes = t.big_bytes;
    s.big_blocks = t.big_blocks;
    s.soft_limit = hk_get(&ctx->account.soft);
    s.hard_limit = hk_get(&ctx->account.hard);
    s.failures = t.failures;
    s.os_calls = hk_get(&ctx->space->os_calls);
    s.fresh_bytes = (hk_get(&ctx->space->clean_units) << HK_UNIT_SHIFT) + hk_get(&ctx->space->clean_mapped);
    s.purged_bytes = hk_get(&ctx->space->purged_bytes);
    hk_sized_write(out, &s, sizeof s);
    return 0;
}

void hak_ctx_peak_reset(hak_ctx *ctx)
{
    ctx = hk_whole(ctx);
    hk_rows_settle(ctx);
    if (ctx->heaps) hk_shared_peak_reset(ctx);
    else hk_set(&ctx->account.peak, hk_get(&ctx->live_bytes));
}

/* ---- Visiting ------------------------------------------------------------------------------------ */

enum { SLAB_WORDS = HK_UNIT_BITS / 64 };

/* Marks the blocks of a slab that are in the magazine. */
static void find_kept(const hak_ctx *ctx, const hk_slab *s, const char *start, uint64_t kept[SLAB_WORDS])
{
    const hk_bin *bin = &ctx->bins[s->kind];
    for (void **at = hk_bin_low(bin); at < bin->top; at++) {
        size_t offset = (uintptr_t)*at - (uintptr_t)start;
        if (offset >= (size_t)s->units << HK_UNIT_SHIFT) continue;
        uint32_t i = hk_slab_number(s->kind, (uint32_t)offset);
        kept[i / 64] |= UINT64_C(1) << (i % 64);
    }
}

static bool visit_slab(const hak_ctx *ctx, const hk_slab *s, hak_visit_fn *fn, void *user)
{
    const hk_class *c = &hk_classes[s->kind];
    hk_extent *e = hk_extent_of_slab(ctx->space, s);
    char *start = hk_slab_first(ctx, e, s);
    uint64_t kept[SLAB_WORDS] = {0};
    find_kept(ctx, s, start, kept);
    for (unsigned i = 0; i < s->fresh; i++) {
        char *p = start + i * (size_t)c->size;
        if (!hk_slab_block_out(e, s, i) || kept[i / 64] >> (i % 64) & 1) continue;
        unsigned label = ctx->labels.on ? *hk_label_byte(e, s->kind, p) : 0;
        hak_block block = {p, c->size, hk_label_known(ctx, label), 0};
        if (!fn(user, &block)) return false;
    }
    return true;
}

/* Whether the block is in the magazine: not live. */
static bool at_hand(const hk_bin *bin, const void *p)
{
    for (void **at = hk_bin_low(bin); at < bin->top; at++)
        if (*at == p) return true;
    return false;
}

static bool visit_run(const hak_ctx *ctx, const hk_slab *s, hak_visit_fn *fn, void *user)
{
    hk_extent *e = hk_extent_of_slab(ctx->space, s);
    char *p = hk_slab_start(e, s);
    if (at_hand(&ctx->bins[s->kind], p)) return true;
    unsigned label = ctx->labels.on ? *hk_label_byte(e, s->kind, p) : 0;
    hak_block block = {p, (size_t)s->units << HK_UNIT_SHIFT, hk_label_known(ctx, label), 0};
    return fn(user, &block);
}

typedef struct visitor {
    const hak_ctx *ctx;
    hak_visit_fn *fn;
    void *user;
} visitor;

/* Packed blocks in magazines are not live. */
static bool visit_packed(void *user, const hak_block *block)
{
    const visitor *v = user;
    unsigned sc = hk_class_of(block->size);
    if (hk_packed_keeps(v->ctx, sc) && at_hand(&v->ctx->bins[sc], block->p)) return true;
    return v->fn(v->user, block);
}

static int visit(const hak_ctx *ctx, hak_visit_fn *fn, void *user)
{
    hk_batches_return(ctx);
    visitor v = {ctx, fn, user};
    if (!hk_packed_visit(ctx, visit_packed, &v)) return 1;
    HK_EACH_OWNED(ctx, s)
    {
        if (s->kind < HK_SMALL_CLASSES ? !visit_slab(ctx, s, fn, user)
                                       : s->kind < HK_BINS && !visit_run(ctx, s, fn, user))
            return 1;
    }
    return hk_alone_visit(ctx, fn, user) ? 0 : 1;
}

int hak_ctx_visit(const hak_ctx *ctx, hak_visit_fn *fn, void *user)
{
    hak_ctx *whole = hk_whole(ctx);
    if (!whole->heaps) return visit(ctx, fn, user);
    hk_shared_settle(whole);
    for (const hak_ctx *heap = hk_heaps_first(whole); heap; heap = heap->heap->next)
        if (visit(heap, fn, user) != 0) return 1;
    return 0;
}

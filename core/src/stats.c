/* What a context tells about itself: pointers, sums, every block. */
#include "big.h"
#include "label.h"
#include "packed.h"
#include "slab.h"

/* Index of the block that starts at p in its slab; -1 = none. */
static int block_index(const hak_ctx *ctx, const hk_extent *e, unsigned kind, const void *p, hk_slab **slab)
{
    size_t unit = ((uintptr_t)p - e->base) >> HK_UNIT_SHIFT;
    hk_slab *s = hk_extent_slab(e, unit);
    unit -= s->head;
    *slab = s += s->head;
    size_t offset = (uintptr_t)p - (e->base + (unit << HK_UNIT_SHIFT)) - hk_slab_phase(ctx, kind);
    size_t size = hk_classes[kind].size;
    return offset % size == 0 && offset / size < s->fresh ? (int)(offset / size) : -1;
}

size_t hak_usable_size(const hak_ctx *ctx, const void *p)
{
    hk_extent *e;
    hk_slab *s;
    uint32_t kind = hk_kind_at(ctx, p, &e);
    if (kind < HK_SMALL_CLASSES) {
        int i = block_index(ctx, e, kind, p, &s);
        return i >= 0 && hk_slab_block_out(e, s, (unsigned)i) ? hk_classes[kind].size : 0;
    }
    if (kind < HK_BINS) {
        s = hk_extent_slab(e, ((uintptr_t)p - e->base) >> HK_UNIT_SHIFT);
        return s->head == 0 && s->used && hk_slab_start(e, s) == p ? (size_t)s->units << HK_UNIT_SHIFT : 0;
    }
    if (kind == HK_KIND_PACKED) return hk_packed_size(ctx, p);
    if (kind == HK_KIND_META || !p) return 0;
    const hk_big *b = hk_big_find(ctx, p);
    return b && !b->cached ? b->size : 0;
}

void hk_misuse(const hak_ctx *ctx, const void *p)
{
    hk_extent *e;
    hk_slab *s;
    uint32_t kind = hk_kind_at(ctx, p, &e);
    const hk_big *b = hk_big_find(ctx, p);
    bool freed = kind < HK_SMALL_CLASSES  ? block_index(ctx, e, kind, p, &s) >= 0
                 : kind == HK_KIND_PACKED ? hk_packed_start(ctx, p)
                                          : b && b->cached;
    if (freed) hk_error(ctx, HAK_E_DOUBLE_FREE, p, "the block is free already");
    else if (hak_owns(ctx, p)) hk_error(ctx, HAK_E_POINTER, p, "not the start of a block");
    else hk_error(ctx, HAK_E_FOREIGN, p, "not a block of this context");
}

bool hak_owns(const hak_ctx *ctx, const void *p)
{
    hk_extent *e;
    return hk_kind_at(ctx, p, &e) < 256 || hk_big_containing(ctx, p);
}

hak_ctx *hak_ctx_of(const hak_space *space, const void *p)
{
    const hk_extent *e = hk_extent_of(space, p);
    if (!e) return hk_big_owner((hak_space *)(uintptr_t)space, p);
    uint32_t id = e->map[((uintptr_t)p - e->base) >> HK_UNIT_SHIFT] >> 8;
    return id ? (hak_ctx *)(void *)hk_unit_address(space, id) : NULL;
}

size_t hak_ctx_live_bytes(const hak_ctx *ctx)
{
    return hk_get(&ctx->live_bytes);
}

int hak_ctx_stats(const hak_ctx *ctx, hak_stats *out)
{
    if (out->size < sizeof out->size) return -1;
    size_t spare_bytes, spare_blocks;
    hk_magazines_sum(ctx, &spare_bytes, &spare_blocks);
    hak_stats s = {.size = out->size};
    s.live_bytes = hk_get(&ctx->live_bytes) - spare_bytes;
    s.live_blocks = hk_get(&ctx->live_blocks) - spare_blocks;
    s.peak_bytes = hk_max(hk_get(&ctx->peak), hk_get(&ctx->live_bytes));
    s.committed_bytes = hk_get(&ctx->committed);
    s.metadata_bytes = hk_get(&ctx->metadata);
    s.cached_bytes = s.committed_bytes - s.live_bytes - s.metadata_bytes;
    s.released_bytes = hk_get(&ctx->released);
    s.reserved_bytes = hk_get(&ctx->space->reserved_bytes);
    s.idle_bytes = hk_get(&ctx->space->idle_units) << HK_UNIT_SHIFT;
    s.big_bytes = hk_get(&ctx->big_bytes);
    s.big_blocks = hk_get(&ctx->big_blocks);
    s.soft_limit = hk_get(&ctx->soft);
    s.hard_limit = hk_get(&ctx->hard);
    s.failures = ctx->failures;
    s.os_calls = hk_get(&ctx->space->os_calls);
    memcpy(out, &s, hk_min(out->size, sizeof s));
    return 0;
}

/* ---- Visiting ------------------------------------------------------------------------------------ */

/* Magazines hold at most 32 blocks, so a scan is as quick as a search. */
static bool in_magazine(const hak_ctx *ctx, unsigned kind, const void *p)
{
    const hk_bin *bin = &ctx->bins[kind];
    for (void **at = bin->lo; at < bin->top; at++)
        if (*at == p) return true;
    return false;
}

static bool visit_slab(const hak_ctx *ctx, const hk_slab *s, hak_visit_fn *fn, void *user)
{
    const hk_class *c = &hk_classes[s->kind];
    hk_extent *e = hk_extent_of_id(ctx->space, s->id);
    char *start = hk_slab_first(ctx, e, s);
    for (unsigned i = 0; i < s->fresh; i++) {
        char *p = start + i * (size_t)c->size;
        if (!hk_slab_block_out(e, s, i) || in_magazine(ctx, s->kind, p)) continue;
        unsigned label = ctx->labelled ? *hk_label_byte(e, s->kind, p) : 0;
        hak_block block = {p, c->size, (hak_label)(label <= ctx->label_count ? label : 0), 0};
        if (!fn(user, &block)) return false;
    }
    return true;
}

static bool visit_run(const hak_ctx *ctx, const hk_slab *s, hak_visit_fn *fn, void *user)
{
    hk_extent *e = hk_extent_of_id(ctx->space, s->id);
    char *p = hk_slab_start(e, s);
    if (in_magazine(ctx, s->kind, p)) return true;
    unsigned label = ctx->labelled ? *hk_label_byte(e, s->kind, p) : 0;
    hak_block block = {p, (size_t)s->units << HK_UNIT_SHIFT,
                       (hak_label)(label <= ctx->label_count ? label : 0), 0};
    return fn(user, &block);
}

int hak_ctx_visit(const hak_ctx *ctx, hak_visit_fn *fn, void *user)
{
    for (unsigned i = 0; i < ctx->packed_count; i++)
        if (!hk_packed_visit(ctx, i, fn, user)) return 1;
    HK_EACH_OWNED(ctx, s)
    {
        if (s->kind < HK_SMALL_CLASSES ? !visit_slab(ctx, s, fn, user)
                                       : s->kind < HK_BINS && !visit_run(ctx, s, fn, user))
            return 1;
    }
    for (const hk_big *b = ctx->bigs; b; b = b->next) {
        hak_block block = {b->p, b->size, (hak_label)(b->label <= ctx->label_count ? b->label : 0), b->site};
        if (!fn(user, &block)) return 1;
    }
    return 0;
}

#include "heap/block.h"

#include "heap/big_map.h"
#include "heap/guard.h"
#include "heap/label.h"
#include "heap/packed.h"
#include "heap/slab.h"

uint32_t hk_find_shared(const hak_ctx **ctx, const void *p, hk_extent **e)
{
    const hak_ctx *owner = NULL;
    uint32_t kind = UINT32_MAX;
    *e = hk_extent_of((*ctx)->space, p);
    if (*e) {
        uint32_t entry = hk_extent_entry(*e, p);
        if (entry >> 8) owner = (const hak_ctx *)(const void *)hk_unit_address((*ctx)->space, entry >> 8);
        kind = entry & 255;
        if (HK_UNLIKELY(kind == HK_KIND_WATCHED) && owner) kind = hk_kind_watched(entry >> 8, *e, p);
    } else {
        const hk_guard_slot *drawn = hk_guard_in((*ctx)->space, p);
        const hk_big *b = drawn ? NULL : hk_big_at((*ctx)->space, p);
        if (drawn) owner = atomic_load_explicit(&drawn->ctx, memory_order_relaxed);
        else if (b) owner = b->ctx;
    }
    if (!owner || __atomic_load_n(&owner->role, __ATOMIC_ACQUIRE) != HK_HEAP ||
        hk_whole(owner) != hk_whole(*ctx))
        return UINT32_MAX;
    *ctx = owner;
    return kind;
}

/* The heap whose live block p lies in; p is in no extent. */
static const hak_ctx *outside_owner(const hak_space *space, const void *p)
{
    const hk_guard_slot *drawn = hk_guard_in(space, p);
    return drawn ? atomic_load_explicit(&drawn->ctx, memory_order_relaxed)
                 : hk_big_owner((hak_space *)(uintptr_t)space, p);
}

const hak_ctx *hk_block_owner(const hak_space *space, const void *p)
{
    const hk_extent *e = hk_extent_of(space, p);
    if (!e) return outside_owner(space, p);
    uint32_t id = hk_extent_entry(e, p) >> 8;
    return id ? (const hak_ctx *)(const void *)hk_unit_address(space, id) : NULL;
}

bool hk_owns(const hak_ctx *ctx, const void *p)
{
    hk_extent *e;
    if (!hk_whole(ctx)->heaps)
        return hk_kind_at(ctx, p, &e) < 256 || (!e && outside_owner(ctx->space, p) == ctx);
    const hak_ctx *owner = hk_block_owner(ctx->space, p);
    return owner && hk_whole(owner) == hk_whole(ctx);
}

/* ---- What there is ------------------------------------------------------------------------------- */

/* Whether p is certainly no block, as pointers of another malloc are not: big blocks begin at a page. */
static bool is_foreign(const hak_space *s, const void *p)
{
    return ((uintptr_t)p & (HK_PAGE - 1)) != 0 && !hk_guard_slot_at(s, p) && !hk_extent_of(s, p);
}

HK_RACY size_t hk_block_size(const hak_ctx *ctx, const void *p)
{
    hk_extent *e;
    hk_slab *s;
    uint32_t kind;
    if (HK_LIKELY(!ctx->role)) {
        kind = hk_kind_at(ctx, p, &e);
    } else if (HK_LIKELY((kind = hk_kind_in_window(ctx, p)) < HK_BINS)) {
        e = ctx->extent;
    } else {
        if (is_foreign(ctx->space, p)) return 0;
        kind = hk_find_shared(&ctx, p, &e);
    }
    if (kind < HK_SMALL_CLASSES) {
        int i = hk_slab_index(ctx, e, kind, p, &s);
        return i >= 0 && hk_slab_block_out(e, s, (unsigned)i) ? hk_classes[kind].size : 0;
    }
    if (kind < HK_BINS) {
        s = hk_extent_slab(e, ((uintptr_t)p - e->base) >> HK_UNIT_SHIFT);
        return s->head == 0 && s->used && hk_slab_start(e, s) == p ? (size_t)s->units << HK_UNIT_SHIFT : 0;
    }
    if (kind == HK_KIND_PACKED) return hk_packed_size(ctx, p);
    if (kind == HK_KIND_META || !p) return 0;
    const hk_guard_slot *drawn = hk_guard_find(ctx, p);
    if (HK_UNLIKELY(drawn != NULL)) return drawn->size;
    const hk_big *b = hk_big_find(ctx, p);
    return b && !b->cached ? b->size : 0;
}

bool hk_is_packed(const hak_ctx *ctx, const void *p)
{
    hk_extent *e;
    return hk_find(&ctx, p, &e) == HK_KIND_PACKED;
}

hak_label hk_label_of_block(const hak_ctx *ctx, const void *p)
{
    hk_extent *e;
    uint32_t kind = hk_find(&ctx, p, &e);
    unsigned label;
    const hk_guard_slot *drawn;
    if (hk_has_labels(kind) && !ctx->labels.on) label = 0;
    else if (kind == HK_KIND_PACKED) label = hk_packed_label(e, p, hk_packed_size(ctx, p));
    else if (hk_has_labels(kind)) label = *hk_label_byte(e, kind, p);
    else if ((drawn = hk_guard_find(ctx, p))) label = drawn->label;
    else label = hk_big_find(ctx, p)->label;
    return hk_label_known(ctx, label);
}

void hk_relabel(const hak_ctx *ctx, void *p, hak_label label)
{
    hk_extent *e;
    uint32_t kind = hk_find(&ctx, p, &e);
    if (kind == HK_KIND_PACKED) {
        size_t size = hk_packed_size(ctx, p);
        if (hk_packed_label_fits(size, hk_label_clamp(label)))
            hk_packed_label_set(e, p, size, hk_label_clamp(label));
    } else if (hk_has_labels(kind)) {
        /* Other threads may be reading it, for sums of labels. */
        __atomic_store_n(hk_label_byte(e, kind, p), hk_label_clamp(label), __ATOMIC_RELAXED);
    } else {
        hk_guard_slot *drawn = hk_guard_find(ctx, p);
        hk_big *b = drawn ? NULL : hk_big_find(ctx, p);
        if (drawn) hk_guard_relabel(ctx, drawn, label);
        if (b) __atomic_store_n(&b->label, hk_label_clamp(label), __ATOMIC_RELAXED);
    }
}

bool hk_alone_visit(const hak_ctx *ctx, hak_visit_fn *fn, void *user)
{
    for (const hk_big *b = ctx->big.live; b; b = b->next) {
        unsigned label = __atomic_load_n(&b->label, __ATOMIC_RELAXED);
        hak_block block = {b->p, b->size, hk_label_known(ctx, label), b->site};
        if (!fn(user, &block)) return false;
    }
    HK_EACH_GUARDED(ctx, drawn)
    {
        unsigned label = __atomic_load_n(&drawn->label, __ATOMIC_RELAXED);
        hak_block block = {drawn->p, drawn->size, hk_label_known(ctx, label), drawn->allocated.site};
        if (!fn(user, &block)) return false;
    }
    return true;
}

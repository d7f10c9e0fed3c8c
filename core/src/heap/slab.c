#include "heap/slab.h"

/* A slab of one block is never partial. */
static bool listed(const hak_ctx *ctx, const hk_slab *s)
{
    return s->trigger == 0 && hk_slab_capacity(ctx, s) > 1;
}

HK_NOINLINE void hk_slab_event(hak_ctx *ctx, hk_slab *s, unsigned kind)
{
    HK_ASSERT(s->kind == kind && s->used <= s->trigger && s->fresh <= hk_slab_capacity(ctx, s));
    if (s->used > 0) {
        hk_slab_list(ctx, hk_bin_of(ctx, kind), s);
        return;
    }
    hk_slab_leave(ctx, s);
    hk_units_give(ctx, s);
}

/* 1 = done, 0 = it was no live block. The caller counts live blocks. */
HK_INLINE unsigned slab_put(hak_ctx *ctx, hk_place at, unsigned kind, void *p)
{
    if (hk_slab_take_back(at, kind, p)) return hk_slab_count_down(ctx, at.slab, kind), 1;
    hk_found_wrong(ctx, HK_WRONG_BLOCK, p);
    return 0;
}

void hk_slab_put_found(hak_ctx *ctx, hk_extent *e, unsigned kind, void *p)
{
    if (HK_LIKELY(hk_slab_is_of(ctx, kind, p))) hk_slab_put_back(ctx, e, kind, p);
    else hk_found_wrong(ctx, HK_WRONG_BLOCK, p);
}

HK_RACY bool hk_slab_block_out(const hk_extent *e, const hk_slab *s, unsigned i)
{
    return i < s->fresh && !(hk_slab_bits(e, s)[i / 64] >> (i % 64) & 1);
}

unsigned hk_slab_free_all(hak_ctx *ctx, void **blocks, unsigned n, bool own)
{
    unsigned left = 0;
    size_t bytes = 0, done = 0;
    for (unsigned i = 0; i < n; i++) {
        void *p = blocks[i];
        uint32_t kind = hk_kind_in_window(ctx, p);
        if (HK_UNLIKELY(kind >= HK_SMALL_CLASSES)) {
            blocks[left++] = p;
            continue;
        }
        hk_bin *bin = hk_bin_of(ctx, kind);
        if (own && bin->top < bin->hi) {
            *bin->top++ = p;
        } else if (slab_put(ctx, hk_place_of(ctx, ctx->extent, kind, p), kind, p)) {
            bytes += hk_classes[kind].size;
            done++;
        }
    }
    hk_count_out(ctx, bytes, done);
    return left;
}

void hk_slab_leave(hak_ctx *ctx, hk_slab *s)
{
    hk_bin *bin = hk_bin_of(ctx, s->kind);
    hk_row_leave(ctx, bin, s);
    if (bin->slab == s) bin->slab = NULL;
    else if (listed(ctx, s)) hk_slab_unlist(ctx, bin, s);
}

void hk_slab_take_over(hak_ctx *ctx, hk_slab *s)
{
    unsigned most = hk_slab_capacity(ctx, s);
    HK_ASSERT(s->used <= most && s->fresh <= most);
    if (s->used == 0) hk_units_give(ctx, s);
    else if (s->used < most) hk_slab_list(ctx, hk_bin_of(ctx, s->kind), s);
    else s->trigger = (uint16_t)(most - 1);
}

size_t hk_slab_put_all(hak_ctx *ctx, unsigned kind, void **block, void **end)
{
    size_t wrong = 0, used_bytes = 0;
    hk_place at = {0};
    for (; block < end; block++) {
        size_t offset = (uintptr_t)*block - at.first;
        if (offset >= used_bytes) {
            bool there = hk_slab_is_of(ctx, kind, *block);
            if (HK_LIKELY(there)) at = hk_place_of(ctx, ctx->extent, kind, *block);
            offset = (uintptr_t)*block - at.first;
            used_bytes = there ? (size_t)at.slab->fresh * hk_classes[kind].size : 0;
        }
        uint32_t i = hk_slab_number(kind, (uint32_t)offset);
        if (HK_UNLIKELY(offset >= used_bytes || i == UINT32_MAX || !hk_slab_set_bit(at.bits, i))) {
            hk_found_wrong(ctx, HK_WRONG_BLOCK, *block);
            wrong++;
            continue;
        }
        HK_ASSERT(at.slab->used > 0 && at.slab->kind == kind);
        if (HK_UNLIKELY(--at.slab->used == at.slab->trigger)) {
            hk_slab_event(ctx, at.slab, kind);
            used_bytes = 0; /* the slab may be gone */
        }
    }
    return wrong;
}

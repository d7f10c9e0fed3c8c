#include "heap/holes.h"

#include "heap/block.h"
#include "heap/slab.h"

HK_RACY unsigned hk_slab_empty_parts(const hak_ctx *ctx, const hk_extent *e, const hk_slab *s)
{
    size_t grain = hk_slab_grain(s), size = hk_classes[s->kind].size,
           offset = hk_slab_first_offset(ctx, s->kind);
    unsigned parts = (unsigned)(((size_t)s->units << HK_UNIT_SHIFT) / grain), used = 0;
    for (unsigned i = 0; i < s->fresh; i++) {
        if (!hk_slab_block_out(e, s, i)) continue;
        size_t at = offset + i * size;
        unsigned first = (unsigned)(at / grain), last = (unsigned)((at + size - 1) / grain);
        for (unsigned part = first; part <= last; part++)
            used |= 1u << part;
        /* Skips to the last block that begins in this part: the ones before it tell nothing new. */
        unsigned skip = (unsigned)(((last + 1) * grain - 1 - offset) / size);
        if (skip > i + 1) i = skip - 1;
    }
    return ~used & ((1u << parts) - 1u);
}

HK_RACY hk_holes hk_slab_holes(const hak_ctx *ctx, const hk_extent *e, const hk_slab *s)
{
    unsigned capacity = hk_slab_capacity(ctx, s), used = s->used;
    if (used == 0 || used >= capacity) return (hk_holes){0, 0};
    size_t free = (size_t)(capacity - used) * hk_classes[s->kind].size, released = hk_slab_released(s);
    free -= hk_min(free, released);
    size_t empty = hk_bits(hk_slab_empty_parts(ctx, e, s) & ~(unsigned)s->released) * hk_slab_grain(s);
    return (hk_holes){free, free - hk_min(free, empty)};
}

HK_RACY double hk_block_pins(const hak_ctx *ctx, const void *p)
{
    hk_extent *e;
    const hak_ctx *owner = ctx;
    uint32_t kind = hk_find(&owner, p, &e);
    if (kind >= HK_SMALL_CLASSES) return 0;
    const hk_slab *s = hk_place_of(owner, e, kind, p).slab;
    unsigned used = s->used;
    return used == 0 ? 0 : (double)hk_slab_holes(owner, e, s).pinned / used;
}

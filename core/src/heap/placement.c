#include "heap/placement.h"

#include "base/random.h"
#include "heap/block.h"
#include "heap/slab.h"

void hk_placement_begin(hak_ctx *ctx, uint64_t seed)
{
    const hak_os *os = &ctx->space->os;
    uint64_t any = (uintptr_t)ctx ^ os->clock(os->user) << 20;
    ctx->checked |= HK_PLACED;
    ctx->watch->placement = seed ? seed : hk_random_next(&any);
}

/* The step is not that of a stream, or one would follow the other. */
uint64_t hk_placement_split(hak_ctx *shared)
{
    uint64_t at =
        __atomic_add_fetch(&shared->watch->placement, UINT64_C(0xD1342543DE82EF95), __ATOMIC_RELAXED);
    return hk_random_next(&at) | 1;
}

/* Blocks that were never handed out are free ones like all others, or the next of them would be known. */
static void open_blocks(const hak_ctx *ctx, hk_place at, unsigned capacity)
{
    hk_slab *s = at.slab;
    size_t size = hk_classes[s->kind].size;
    if (ctx->debug & HAK_DEBUG_POISON)
        memset((char *)at.first + s->fresh * size, HK_POISON_FREE, (capacity - s->fresh) * size);
    for (uint32_t i = s->fresh; i < capacity; i++)
        hk_slab_set_bit(at.bits, i);
    s->fresh = (uint16_t)capacity;
}

/* The number of the set bit before which there are n others. */
static uint32_t set_bit(const uint64_t *bits, unsigned n)
{
    uint32_t i = 0;
    for (unsigned here; n >= (here = hk_bits(bits[i / 64])); i += 64)
        n -= here;
    uint64_t w = bits[i / 64];
    for (; n; n--)
        w &= w - 1;
    return i + (uint32_t)__builtin_ctzll(w);
}

void *hk_placement_draw(hak_ctx *ctx, void *p)
{
    hk_extent *e;
    unsigned kind = hk_kind_at(ctx, p, &e);
    hk_place at = hk_place_of(ctx, e, kind, p);
    unsigned capacity = hk_slab_capacity(ctx, at.slab), others = capacity - at.slab->used;
    if (at.slab->fresh < capacity) open_blocks(ctx, at, capacity);
    if (!others) return p;
    hk_slab_take_back(at, kind, p);
    uint64_t drawn = (hk_random_next(&ctx->watch->placement) >> 32) * (others + 1) >> 32;
    uint32_t i = set_bit(at.bits, (unsigned)drawn);
    at.bits[i / 64] &= ~(UINT64_C(1) << (i % 64));
    at.slab->cursor = 0; /* the next refill finds blocks in front of this one, too */
    return (char *)at.first + i * (size_t)hk_classes[kind].size;
}

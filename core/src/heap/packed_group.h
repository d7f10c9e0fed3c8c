/* Groups of packed units: their tables of bits and the lists of free blocks. For packed.c and
 * packed_groups.c alone. */
#ifndef HK_PACKED_GROUP_H
#define HK_PACKED_GROUP_H

#include "heap/packed.h"

enum { HK_GRANULE_SHIFT = 3 };

/* ---- Groups --------------------------------------------------------------------------------------- */

/* Units in a row, with tables of all of them in front, in the first group behind the context. */
typedef struct hk_group {
    char *start;
    size_t size, head; /* bytes; those in front of the tables */
} hk_group;

static inline hk_group hk_group_of(const hak_ctx *ctx, const void *p)
{
    char *own = (char *)(uintptr_t)ctx;
    if ((size_t)((const char *)p - own) < HK_UNIT) return (hk_group){own, HK_UNIT, ctx->head};
    const hk_extent *e = HK_LIKELY(hk_in_window(ctx, p)) ? ctx->extent : hk_extent_of(ctx->space, p);
    const hk_slab *s = hk_extent_slab(e, ((uintptr_t)p - e->base) >> HK_UNIT_SHIFT);
    s += s->head;
    return (hk_group){hk_slab_start(e, s), (size_t)s->units << HK_UNIT_SHIFT, 0};
}

/* Where blocks are. */
HK_INLINE size_t hk_group_first(hk_group g)
{
    return g.head + sizeof(hk_packed_head) + g.size / 128 * 3;
}

static inline hk_packed_head *hk_group_head(hk_group g)
{
    return (hk_packed_head *)(void *)(g.start + g.head);
}

/* A bit for each 8 bytes: a block starts here. */
HK_INLINE uint64_t *hk_group_starts(hk_group g)
{
    return (uint64_t *)(void *)(g.start + g.head + sizeof(hk_packed_head));
}

/* A bit for each 16 bytes: the block that starts here is free. */
HK_INLINE uint64_t *hk_group_frees(hk_group g)
{
    return hk_group_starts(g) + g.size / 512;
}

/* All groups, the one taken last first; the context's own is the last of them. */
#define HK_EACH_GROUP(ctx, g) for (hk_group g = hk_group_last(ctx); g.start; g = hk_group_before(ctx, g))

static inline hk_group hk_group_at(const hak_ctx *ctx, int32_t number)
{
    return hk_group_of(ctx, (char *)(uintptr_t)ctx + ((ptrdiff_t)number * (ptrdiff_t)HK_UNIT));
}

static inline hk_group hk_group_last(const hak_ctx *ctx)
{
    return ctx->packed.units ? hk_group_at(ctx, ctx->packed.last) : (hk_group){NULL, 0, 0};
}

static inline hk_group hk_group_before(const hak_ctx *ctx, hk_group g)
{
    return g.start == (const char *)ctx ? (hk_group){NULL, 0, 0} : hk_group_at(ctx, hk_group_head(g)->before);
}

/* ---- Bits ----------------------------------------------------------------------------------------- */

HK_INLINE void hk_bit_set(uint64_t *bits, size_t i)
{
    bits[i / 64] |= UINT64_C(1) << (i % 64);
}

HK_INLINE void hk_bit_clear(uint64_t *bits, size_t i)
{
    bits[i / 64] &= ~(UINT64_C(1) << (i % 64));
}

/* Other threads may be asking about a block that they hold. */
HK_RACY static inline bool hk_bit_is_set(const uint64_t *bits, size_t i)
{
    return bits[i / 64] >> (i % 64) & 1;
}

static inline bool hk_group_is_free(hk_group g, size_t offset)
{
    return hk_bit_is_set(hk_group_frees(g), offset >> 4);
}

static inline bool hk_group_is_start(hk_group g, size_t offset)
{
    return offset % 8 == 0 && hk_bit_is_set(hk_group_starts(g), offset >> 3);
}

HK_INLINE void hk_group_mark_free(hk_group g, size_t offset)
{
    hk_bit_set(hk_group_starts(g), offset >> 3);
    hk_bit_set(hk_group_frees(g), offset >> 4);
}

/* Offset of the first start behind the one at `offset`, the region apart. */
HK_RACY static inline size_t hk_group_next_marked(hk_group g, size_t offset)
{
    const uint64_t *starts = hk_group_starts(g);
    size_t at = (offset >> 3) + 1, words = g.size / 512, i = at / 64;
    if (i >= words) return g.size;
    uint64_t w = starts[i] >> (at % 64);
    if (w) return (at + (unsigned)__builtin_ctzll(w)) << 3;
    /* Large blocks have many words without a start. */
    for (i++; i + 4 <= words && !(starts[i] | starts[i + 1] | starts[i + 2] | starts[i + 3]); i += 4) {
    }
    for (; i < words; i++)
        if (starts[i]) return (i * 64 + (unsigned)__builtin_ctzll(starts[i])) << 3;
    return g.size;
}

/* The same if the region may begin behind the block: its start is not marked. Also for a live block of
 * another thread's heap: a thread that reads the region's start first sees the marks of all blocks cut
 * before. */
static inline size_t hk_group_next(const hak_ctx *ctx, hk_group g, size_t offset)
{
    size_t region = (size_t)(__atomic_load_n(&ctx->packed.at, __ATOMIC_ACQUIRE) - g.start);
    size_t next = hk_group_next_marked(g, offset);
    return offset < region && region < next ? region : next;
}

static inline size_t hk_group_size_at(const hak_ctx *ctx, hk_group g, const char *p)
{
    size_t offset = (size_t)(p - g.start);
    return hk_group_next(ctx, g, offset) - offset;
}

/* ---- Free blocks ---------------------------------------------------------------------------------- */

/* Lists link through the first bytes of a block. Granules from the context: 16 GiB to either side. */
static inline char *hk_packed_decode(const hak_ctx *ctx, uint32_t code)
{
    return (char *)(uintptr_t)ctx + ((ptrdiff_t)(int32_t)code * (1 << HK_GRANULE_SHIFT));
}

static inline uint32_t hk_packed_encode(const hak_ctx *ctx, const char *p)
{
    return (uint32_t)((p - (const char *)ctx) >> HK_GRANULE_SHIFT);
}

/* To the list of the largest class that fits into it. */
static inline void hk_packed_push(hak_ctx *ctx, char *p, size_t size)
{
    hk_packed *k = &ctx->packed;
    unsigned sc = hk_class_of(size);
    if (hk_classes[sc].size > size) sc--;
    memcpy(p, &k->free[sc], sizeof k->free[0]);
    k->free[sc] = hk_packed_encode(ctx, p);
    k->some[sc / 64] |= UINT64_C(1) << (sc % 64);
}

static inline char *hk_packed_pop(hak_ctx *ctx, unsigned sc)
{
    hk_packed *k = &ctx->packed;
    char *p = hk_packed_decode(ctx, k->free[sc]);
    memcpy(&k->free[sc], p, sizeof k->free[0]);
    if (!k->free[sc]) k->some[sc / 64] &= ~(UINT64_C(1) << (sc % 64));
    return p;
}

/* A region for a block of `size` bytes, which may have to be aligned: a free block, or a new group. false = no
 * memory, or the context has its units. */
HK_NOINLINE bool hk_packed_region_next(hak_ctx *ctx, size_t size);

#endif

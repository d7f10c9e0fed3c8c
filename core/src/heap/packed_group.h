/* Groups of packed units: their tables of bits and the lists of free blocks. For packed*.c and put.c
 * alone. */
#ifndef HK_PACKED_GROUP_H
#define HK_PACKED_GROUP_H

#include "heap/account.h"
#include "heap/packed_label.h"
#include "heap/packed_quick.h"
#include "heap/units.h"

enum { HK_GRANULE_SHIFT = 3 };

/* ---- Groups --------------------------------------------------------------------------------------- */

/* Units in a row, with tables of all of them in front, in the first group behind the context. */
typedef struct hk_group {
    char *start;
    size_t size, head; /* bytes; those in front of the tables: the context, or HK_BESIDE */
} hk_group;

HK_INLINE hk_group hk_group_in(const hk_extent *e, size_t unit)
{
    const hk_slab *s = hk_extent_slab(e, unit);
    unsigned head = s->head;
    return (hk_group){(char *)(e->base + ((unit - head) << HK_UNIT_SHIFT)),
                      (size_t)s[head].units << HK_UNIT_SHIFT, HK_BESIDE};
}

/* The context's first one. */
HK_INLINE hk_group hk_group_own(const hak_ctx *ctx)
{
    return (hk_group){(char *)(uintptr_t)ctx, HK_UNIT, ctx->head};
}

static inline hk_group hk_group_of(const hak_ctx *ctx, const void *p)
{
    if ((uintptr_t)p - (uintptr_t)ctx < HK_UNIT) return hk_group_own(ctx);
    const hk_extent *e = HK_LIKELY(hk_in_window(ctx, p)) ? ctx->extent : hk_extent_of(ctx->space, p);
    return hk_group_in(e, ((uintptr_t)p - e->base) >> HK_UNIT_SHIFT);
}

/* Returns the same for a packed block of the window, and calls nothing. */
HK_INLINE hk_group hk_group_in_window(const hak_ctx *ctx, const void *p)
{
    if ((uintptr_t)p - (uintptr_t)ctx < HK_UNIT) return hk_group_own(ctx);
    return hk_group_in(ctx->extent, ((uintptr_t)p - ctx->base) >> HK_UNIT_SHIFT);
}

/* Where blocks are. */
HK_INLINE size_t hk_group_first(hk_group g)
{
    return g.head + HK_PACKED_HEAD + g.size / 128 * 3 + HK_BESIDE;
}

static inline hk_packed_head *hk_group_head(hk_group g)
{
    return (hk_packed_head *)(void *)(g.start + g.head);
}

/* A bit for each 8 bytes: a block starts here, or the region. Behind the last word is one of ones: what reads
 * on finds the end of the group. */
HK_INLINE uint64_t *hk_group_starts(hk_group g)
{
    return (uint64_t *)(void *)(g.start + g.head + sizeof(hk_packed_head));
}

/* That table as hk_slab and hk_packed have it. A group begins at a multiple of what a word has bits for. */
HK_INLINE uintptr_t hk_group_starts_biased(hk_group g)
{
    return (uintptr_t)hk_group_starts(g) - ((uintptr_t)g.start >> 6);
}

/* A bit for each 16 bytes: the block that starts here is free. */
HK_INLINE uint64_t *hk_group_frees(hk_group g)
{
    return hk_group_starts(g) + g.size / 512 + 1;
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
    hk_test_and_set(&bits[i / 64], i);
}

HK_INLINE void hk_bit_clear(uint64_t *bits, size_t i)
{
    hk_clear_bit(&bits[i / 64], i);
}

/* Marks a free block that begins at the offset, and is in no list. */
HK_INLINE void hk_group_mark_free(hk_group g, size_t offset)
{
    hk_bit_set(hk_group_starts(g), offset >> 3);
    hk_bit_set(hk_group_frees(g), offset >> 4);
}

/* Other threads may be asking about a block that they hold. */
HK_RACY_INLINE bool hk_bit_is_set(const uint64_t *bits, size_t i)
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

/* Offset of the first start in this word and those behind it. */
HK_RACY_INLINE size_t hk_group_start_from(hk_group g, size_t word)
{
    const uint64_t *starts = hk_group_starts(g);
    size_t words = g.size / 512, i = word;
    /* Large blocks have many words without a start. */
    for (; i + 4 <= words && !(starts[i] | starts[i + 1] | starts[i + 2] | starts[i + 3]); i += 4) {
    }
    for (; i < words; i++)
        if (starts[i]) return (i * 64 + (unsigned)__builtin_ctzll(starts[i])) << 3;
    return g.size;
}

/* Offset of the first start behind the one at `offset`: where the block at `offset` ends. A thread that holds
 * the block may ask while the heap's own thread works: the mark behind a live block does not move. */
HK_RACY_INLINE size_t hk_group_next(hk_group g, size_t offset)
{
    const uint64_t *starts = hk_group_starts(g);
    size_t at = (offset >> 3) + 1, words = g.size / 512, i = at / 64;
    if (i >= words) return g.size;
    uint64_t w = starts[i] >> (at % 64);
    if (w) return (at + (unsigned)__builtin_ctzll(w)) << 3;
    if (i + 1 < words && starts[i + 1]) return ((i + 1) * 64 + (unsigned)__builtin_ctzll(starts[i + 1])) << 3;
    return hk_group_start_from(g, i + 2);
}

/* Whether the page at this offset went back. Where such a page begins a free block may begin, and none in it. */
HK_INLINE bool hk_group_is_gone(hk_group g, size_t offset)
{
    return HK_UNLIKELY(hk_group_head(g)->gone != 0) && hk_group_head(g)->gone >> offset / HK_PAGE & 1;
}

/* Whether a free block at this offset, which may be the end of the group, can be part of one before it. gone: of the
 * group's head. */
HK_INLINE bool hk_group_joins(hk_group g, size_t offset, uint32_t gone)
{
    return offset < g.size && hk_group_is_free(g, offset) && !(gone >> offset / HK_PAGE & 1);
}

/* ---- Free blocks ---------------------------------------------------------------------------------- */

/* Lists link through the first bytes of a block. Granules from the context: 16 GiB to either side. Who writes
 * to a free block changes its link: one that is followed is compared with the bits, which lie elsewhere and
 * are what counts. */
static inline char *hk_packed_decode(const hak_ctx *ctx, uint32_t code)
{
    return (char *)(uintptr_t)ctx + ((ptrdiff_t)(int32_t)code * (1 << HK_GRANULE_SHIFT));
}

static inline uint32_t hk_packed_encode(const hak_ctx *ctx, const char *p)
{
    return (uint32_t)((p - (const char *)ctx) >> HK_GRANULE_SHIFT);
}

/* Whose list a free block belongs to whose size is that of class sc, or is rounded up to it: the largest that
 * fits into it. */
HK_INLINE unsigned hk_packed_list_of(unsigned sc, size_t size)
{
    return hk_classes[sc].size > size ? sc - 1 : sc;
}

HK_INLINE void hk_packed_link(hak_ctx *ctx, unsigned sc, char *p)
{
    hk_packed *k = &ctx->packed;
    uint32_t first = k->free[sc];
    memcpy(p, &first, sizeof first);
    k->free[sc] = hk_packed_encode(ctx, p);
    if (!first) hk_bit_set(k->some, sc);
}

static inline void hk_packed_push(hak_ctx *ctx, char *p, size_t size)
{
    hk_packed_link(ctx, hk_packed_list_of(hk_class_of(size), size), p);
}

typedef struct hk_free_block {
    char *p;
    size_t size;
    hk_group group;
    hk_extent *extent;
} hk_free_block;

/* Fills in where b->p is; false = in no packed unit of ctx. Any pointer whatever. */
HK_INLINE bool hk_free_block_find(const hak_ctx *ctx, hk_free_block *b)
{
    const char *p = b->p;
    size_t unit = ((uintptr_t)p - ctx->base) >> HK_UNIT_SHIFT;
    hk_extent *e = ctx->extent;
    /* Another thread may end a profile meanwhile, and no longer watch the unit. */
    if (HK_UNLIKELY(hk_kind_in_window(ctx, p) != HK_KIND_PACKED)) {
        if (hk_kind_at(ctx, p, &e) != HK_KIND_PACKED) return false;
        unit = ((uintptr_t)p - e->base) >> HK_UNIT_SHIFT;
    }
    b->group =
        HK_UNLIKELY((uintptr_t)p - (uintptr_t)ctx < HK_UNIT) ? hk_group_own(ctx) : hk_group_in(e, unit);
    b->extent = e;
    return true;
}

/* Fills in the rest about the one at b->p, which a list of this class leads to. false = the list is
 * broken. */
HK_INLINE bool hk_free_block_measure(const hak_ctx *ctx, unsigned sc, hk_free_block *b)
{
    if (HK_UNLIKELY(!hk_free_block_find(ctx, b))) return false;
    size_t offset = (size_t)(b->p - b->group.start), i = offset >> 3;
    const uint64_t *starts = hk_group_starts(b->group);
    uint64_t w = starts[i / 64] >> (i % 64), after = w >> 1;
    size_t next = HK_LIKELY(after != 0) ? offset + 8 + ((size_t)__builtin_ctzll(after) << 3)
                                        : hk_group_start_from(b->group, i / 64 + 1);
    b->size = next - offset;
    return w & 1 && hk_group_is_free(b->group, offset) && b->size >= hk_classes[sc].size;
}

/* The first of the class's list, which is not empty; it stays there. false = the list is broken. */
HK_INLINE bool hk_packed_first(const hak_ctx *ctx, unsigned sc, hk_free_block *b)
{
    b->p = hk_packed_decode(ctx, ctx->packed.free[sc]);
    return hk_free_block_measure(ctx, sc, b);
}

/* The smallest class, from this one on, of which a free block is listed; HK_SMALL_CLASSES = none. */
static inline unsigned hk_packed_listed_from(const hak_ctx *ctx, unsigned sc)
{
    const uint64_t *some = ctx->packed.some;
    uint64_t w = sc < 64 ? some[0] >> sc << sc : 0;
    if (w) return (unsigned)__builtin_ctzll(w);
    w = sc <= 64 ? some[1] : some[1] >> (sc - 64) << (sc - 64);
    return w ? 64u + (unsigned)__builtin_ctzll(w) : HK_SMALL_CLASSES;
}

static inline void hk_packed_pop(hak_ctx *ctx, unsigned sc, const char *p)
{
    hk_packed *k = &ctx->packed;
    memcpy(&k->free[sc], p, sizeof k->free[0]);
    if (!k->free[sc]) hk_bit_clear(k->some, sc);
}

/* ---- Blocks --------------------------------------------------------------------------------------- */

HK_INLINE const hk_extent *hk_packed_extent(const hak_ctx *ctx, const void *p)
{
    return HK_LIKELY(hk_in_window(ctx, p)) ? ctx->extent : hk_extent_of(ctx->space, p);
}

/* Whether p is the region's start, which is marked as those of blocks are. */
HK_RACY_ALWAYS bool hk_packed_is_region(const hak_ctx *ctx, const void *p)
{
    return p == ctx->packed.at && p != ctx->packed.end;
}

/* Returns the usable size of the live block at p; 0 = none starts there. The caller knows that p is not the
 * start of the region. */
HK_INLINE size_t hk_packed_size_marked(hk_group g, const void *p)
{
    size_t offset = (size_t)((const char *)p - g.start);
    if (!hk_group_is_start(g, offset) || hk_group_is_free(g, offset)) return 0;
    return hk_group_next(g, offset) - offset;
}

/* Returns the same, and 0 for the start of the region. Only the thread that may change the heap asks. */
HK_INLINE size_t hk_packed_size_in(const hak_ctx *ctx, hk_group g, const void *p)
{
    return hk_packed_is_region(ctx, p) ? 0 : hk_packed_size_marked(g, p);
}

/* The live block at p, of that size, which class sc is for, becomes a free one. */
HK_INLINE void hk_packed_put_in(hak_ctx *ctx, hk_group g, char *p, unsigned sc, size_t size)
{
    unsigned list = hk_packed_list_of(sc, size);
    HK_ASSERT(size >= 16 && size % 8 == 0);
    hk_bit_set(hk_group_frees(g), (size_t)(p - g.start) >> 4);
    hk_packed_link(ctx, list, p);
    ctx->packed.freed += (uint32_t)size;
    hk_packed_count_out(ctx, sc, size);
}

#endif

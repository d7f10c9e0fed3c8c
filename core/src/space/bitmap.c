#include "space/bitmap.h"

enum { GRAIN = HK_BITMAP_LEAST / 64, ROW_MOST = HK_UNIT_BITS / HK_BITMAP_LEAST };

/* By class.bits: the bits of a mask that a bitmap takes, and where in a mask they may begin. */
static const uint64_t bitmap_rows[] = {1, 3, 15, 255},
                      begins[] = {~UINT64_C(0), UINT64_C(0x5555555555555555), UINT64_C(0x1111111111111111),
                                  UINT64_C(0x0101010101010101)};
_Static_assert(ROW_MOST == 8, "the longest row is the last");

void hk_bitmaps_open(hk_chunk *chunk, size_t n)
{
    for (size_t i = 0; i < HK_BITMAP_MASKS; i++) {
        size_t room = n * ROW_MOST > i * 64 ? n * ROW_MOST - i * 64 : 0;
        chunk->bitmaps[i] = room >= 64 ? 0 : ~UINT64_C(0) << room;
    }
}

uint32_t hk_bitmap_take(hk_chunk *chunk, unsigned sc)
{
    unsigned log = hk_classes[sc].bits;
    for (uint32_t i = 0;; i++) {
        uint64_t free = ~chunk->bitmaps[i];
        for (unsigned n = 1; n < 1u << log; n *= 2)
            free &= free >> n;
        free &= begins[log];
        HK_ASSERT(i < HK_BITMAP_MASKS);
        if (!free) continue;
        uint32_t bit = (uint32_t)__builtin_ctzll(free);
        HK_ASSERT(!(chunk->bitmaps[i] & bitmap_rows[log] << bit));
        chunk->bitmaps[i] |= bitmap_rows[log] << bit;
        return (i * 64 + bit) * GRAIN;
    }
}

void hk_bitmap_give(hk_chunk *chunk, const hk_slab *s)
{
    size_t at = s->bits % HK_CHUNK_WORDS / GRAIN;
    HK_ASSERT(hk_bitmap_taken(chunk, s));
    chunk->bitmaps[at / 64] &= ~(bitmap_rows[hk_classes[s->kind].bits] << at % 64);
}

size_t hk_bitmaps_end(const hk_chunk *chunk)
{
    size_t i = HK_BITMAP_MASKS;
    while (i > 0 && chunk->bitmaps[i - 1] == 0)
        i--;
    return i * 64 * GRAIN;
}

bool hk_bitmap_taken(const hk_chunk *chunk, const hk_slab *s)
{
    size_t at = s->bits % HK_CHUNK_WORDS / GRAIN;
    uint64_t row = bitmap_rows[hk_classes[s->kind].bits];
    return (chunk->bitmaps[at / 64] >> at % 64 & row) == row;
}

#ifdef HAKMEM_ASSERT
bool hk_bitmap_zero(const hk_extent *e, const hk_slab *s)
{
    const uint64_t *bits = hk_slab_bits(e, s);
    uint64_t any = 0;
    for (size_t i = 0; i < (size_t)GRAIN << hk_classes[s->kind].bits; i++)
        any |= bits[i];
    return !any;
}
#endif

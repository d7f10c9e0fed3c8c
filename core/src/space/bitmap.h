/* Room for the bitmaps of slabs. A chunk has HK_UNIT_BITS bits for each unit. A slab takes as many bits as
 * its class needs, a power of two aligned to itself, at the lowest free place. A unit has at most one bitmap,
 * so there is always room for the bitmap of a unit just taken. The space's lock protects all of this. */
#ifndef HK_BITMAP_H
#define HK_BITMAP_H

#include "base/classes.h"
#include "space/space.h"

enum { HK_CHUNK_WORDS = HK_CHUNK_UNITS * HK_UNIT_BITS / 64 };

/* Bytes of a bitmap; 0 = units of this kind need none. */
HK_INLINE size_t hk_bitmap_bytes(unsigned kind)
{
    return kind < HK_SMALL_CLASSES ? (size_t)HK_BITMAP_LEAST / 8 << hk_classes[kind].bits : 0;
}

/* For a chunk of n units, before it is used. */
void hk_bitmaps_open(hk_chunk *chunk, size_t n);
/* A bitmap of zeros for a slab of the class: where it is in the chunk's room, in words. */
uint32_t hk_bitmap_take(hk_chunk *chunk, unsigned sc);
/* Its bits are zero. */
void hk_bitmap_give(hk_chunk *chunk, const hk_slab *slab);
/* Words at the beginning of the chunk's room that hold all bitmaps. */
size_t hk_bitmaps_end(const hk_chunk *chunk);
/* Whether the slab, of a unit of the chunk, has the room that its record names. */
bool hk_bitmap_taken(const hk_chunk *chunk, const hk_slab *slab);
/* Whether no bit of the bitmap of a slab is set, for assertions. */
bool hk_bitmap_zero(const hk_extent *e, const hk_slab *s);

#endif

#include "inner.h"

#include "base/mask.h"
#include "space/bitmap.h"
#include "space/purge.h"

#include <stdlib.h>

static void put(hk_mask m, uint64_t out[2])
{
    out[0] = m.w[0];
    out[1] = m.w[1];
}

void inner_mask_of(unsigned from, unsigned n, uint64_t out[2])
{
    put(hk_mask_of(from, n), out);
}

unsigned inner_mask_count(const uint64_t w[2])
{
    return hk_mask_count(w);
}

unsigned inner_mask_row(const uint64_t w[2], unsigned n)
{
    return hk_mask_row(w, n);
}

void inner_mask_lowest(const uint64_t w[2], unsigned n, uint64_t out[2])
{
    put(hk_mask_lowest(w, n), out);
}

struct inner_chunk {
    hk_chunk chunk;
};

inner_chunk *inner_chunk_new(size_t units)
{
    inner_chunk *c = calloc(1, sizeof *c);
    hk_bitmaps_open(&c->chunk, units);
    return c;
}

void inner_chunk_delete(inner_chunk *c)
{
    free(c);
}

size_t inner_bitmap_bytes(unsigned kind)
{
    return hk_bitmap_bytes(kind);
}

uint32_t inner_bitmap_take(inner_chunk *c, unsigned kind)
{
    return hk_bitmap_take(&c->chunk, kind);
}

/* As of a slab of the third chunk: where its bitmap is counts from the extent's first. */
static hk_slab slab_of(unsigned kind, uint32_t at)
{
    hk_slab s = {.bits = 2 * HK_CHUNK_WORDS + at, .kind = (uint8_t)kind};
    return s;
}

void inner_bitmap_give(inner_chunk *c, unsigned kind, uint32_t at)
{
    hk_slab s = slab_of(kind, at);
    hk_bitmap_give(&c->chunk, &s);
}

bool inner_bitmap_taken(const inner_chunk *c, unsigned kind, uint32_t at)
{
    hk_slab s = slab_of(kind, at);
    return hk_bitmap_taken(&c->chunk, &s);
}

size_t inner_bitmaps_end(const inner_chunk *c)
{
    return hk_bitmaps_end(&c->chunk);
}

unsigned inner_small_classes(void)
{
    return HK_SMALL_CLASSES;
}

/* Units of nobody's context: any owner does. */
uint32_t inner_units_take(hak_space *space, size_t units)
{
    bool zero;
    return hk_space_take(space, NULL, units, 1u << 8 | HK_KIND_META, HK_WANT_DIRTY, false, &zero);
}

void inner_units_give(hak_space *space, uint32_t id, size_t units)
{
    hk_space_give(space, id, units);
}

const char *inner_unit_address(const hak_space *space, uint32_t id)
{
    return hk_unit_address(space, id);
}

size_t inner_retained(const hak_space *space)
{
    return hk_get(&space->retained_units);
}

size_t inner_purge_due(const hak_space *space)
{
    return hk_purge_due(space);
}

void inner_purge_bytes(hak_space *space, size_t n)
{
    hk_lock_take(&space->lock);
    hk_purge_bytes(space, n);
    hk_lock_drop(&space->lock);
}

size_t inner_purge_batch(hak_space *space, size_t n)
{
    hk_lock_take(&space->lock);
    size_t left = hk_purge_batch(space, n);
    hk_lock_drop(&space->lock);
    return left;
}

void inner_purge_to_limit(hak_space *space)
{
    hk_lock_take(&space->lock);
    hk_purge_to_limit(space);
    hk_lock_drop(&space->lock);
}

// Inline functions and structs of the core's inside, in reach of C++ tests: its headers are C11.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// base/mask.h; a mask is two words.
void inner_mask_of(unsigned from, unsigned n, uint64_t out[2]);
unsigned inner_mask_count(const uint64_t w[2]);
unsigned inner_mask_row(const uint64_t w[2], unsigned n);
void inner_mask_lowest(const uint64_t w[2], unsigned n, uint64_t out[2]);

// space/bitmap.h: the room for bitmaps of one chunk, in words.
typedef struct inner_chunk inner_chunk;
inner_chunk *inner_chunk_new(size_t units);
void inner_chunk_delete(inner_chunk *chunk);
size_t inner_bitmap_bytes(unsigned kind);
uint32_t inner_bitmap_take(inner_chunk *chunk, unsigned kind);
void inner_bitmap_give(inner_chunk *chunk, unsigned kind, uint32_t at);
bool inner_bitmap_taken(const inner_chunk *chunk, unsigned kind, uint32_t at);
size_t inner_bitmaps_end(const inner_chunk *chunk);
unsigned inner_small_classes(void);

// space/purge.h: units of a space, without a context.
typedef struct hak_space hak_space;
uint32_t inner_units_take(hak_space *space, size_t units);
void inner_units_give(hak_space *space, uint32_t id, size_t units);
const char *inner_unit_address(const hak_space *space, uint32_t id);
size_t inner_retained(const hak_space *space);
size_t inner_purge_due(const hak_space *space);
void inner_purge_bytes(hak_space *space, size_t n);
size_t inner_purge_batch(hak_space *space, size_t n);
void inner_purge_to_limit(hak_space *space);

#ifdef __cplusplus
}
#endif

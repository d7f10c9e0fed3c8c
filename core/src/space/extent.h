/* Lays an extent's arrays out in its reservation, before its units, and says which units share pages of label
 * bytes. */
#ifndef HK_EXTENT_H
#define HK_EXTENT_H

#include "base/mask.h"
#include "space/space.h"

/* Offsets of an extent's arrays. The head of the space is in the page where slabs and map begin. */
typedef struct hk_layout {
    size_t slabs, head, map, chunks, bits, labels, more, units;
    size_t label_units; /* in a caller's buffer: the last units, which can hold all label bytes */
} hk_layout;

/* first: of the space, which has its own struct there. alone: there will be no further extents. */
hk_layout hk_lay_out(size_t units, size_t align, bool first, bool alone);
/* Units that fit a reservation of n bytes at p whose units begin at an address aligned to `align`. */
size_t hk_units_for(char *p, size_t n, size_t align, bool first, bool alone);
void hk_extent_init(hk_extent *e, char *p, size_t n, size_t units, const hk_layout *l, size_t align);

/* Units whose label bytes share a page; of the coarsest area fewer, since others want rows too. */
unsigned hk_units_a_page(unsigned area);
/* Adds the units whose page of label bytes is in use. */
void hk_chunk_add_paged(hk_mask *m, const hk_chunk *chunk, unsigned area);
/* First unit of a page of which none is in use or resident, or shares a page with others; 128 = none. */
unsigned hk_chunk_page_unused(const hk_chunk *chunk, unsigned area);

#endif

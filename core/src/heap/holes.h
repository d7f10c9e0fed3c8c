/* Measures the free memory between the live blocks of a slab. */
#ifndef HK_HOLES_H
#define HK_HOLES_H

#include "heap/ctx.h"

typedef struct hk_holes {
    size_t free;   /* bytes of free blocks, without what was released */
    size_t pinned; /* those on parts of the slab on which a block lies that is out */
} hk_holes;

/* Returns the parts of a slab (a bit for each hk_slab_grain() bytes) on which no block lies that is out. */
unsigned hk_slab_empty_parts(const hak_ctx *ctx, const hk_extent *e, const hk_slab *s);
/* Returns what is free in a slab; nothing where no block is out, since the slab as a whole is free then. */
hk_holes hk_slab_holes(const hak_ctx *ctx, const hk_extent *e, const hk_slab *s);
/* Returns the share of a live block in the pinned bytes of its slab; 0 = it is in no slab. */
double hk_block_pins(const hak_ctx *ctx, const void *p);

#endif

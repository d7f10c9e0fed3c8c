/* The last ways to lengthen a packed block, when there is no memory for another one beside it. */
#ifndef HK_PACKED_GROW_H
#define HK_PACKED_GROW_H

#include "heap/ctx.h"

/* Resizes the packed block at p of a local context to n bytes, more than it has, with the free bytes on both sides. It
 * keeps its label. Returns where the block is now, which may be lower; NULL = there are too few, nothing changed. A
 * step for each free block. */
HK_COLD void *hk_packed_grow(hak_ctx *ctx, void *p, size_t n);
/* Moves the packed block at p of a local context to a run of n bytes, more than it has and a unit at least, page by page,
 * from its end: each page goes back before the next one is copied. The block keeps its label. Returns the run; NULL =
 * cannot; nothing changed. */
HK_COLD void *hk_packed_move(hak_ctx *ctx, void *p, size_t n);

#endif

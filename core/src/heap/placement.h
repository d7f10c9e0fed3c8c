/* HAK_DEBUG_RANDOM: draws which free block of a slab is handed out. */
#ifndef HK_PLACEMENT_H
#define HK_PLACEMENT_H

#include "heap/ctx.h"

/* From now on; seed 0 = any. */
void hk_placement_begin(hak_ctx *ctx, uint64_t seed);
/* A seed for a further heap of the shared context. [any thread] */
uint64_t hk_placement_split(hak_ctx *shared);
/* p was just taken from the current slab of its bin. Puts it back, and takes one of all that are free
 * there. */
void *hk_placement_draw(hak_ctx *ctx, void *p);

#endif

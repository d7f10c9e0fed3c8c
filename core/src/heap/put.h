/* Empties magazines whose blocks are not of slabs: puts packed blocks into the lists of free blocks, and
 * gives runs to the space. */
#ifndef HK_PUT_H
#define HK_PUT_H

#include "heap/units.h"

/* Returns the record of the unit at p. */
HK_INLINE hk_slab *hk_run_slab(hk_extent *e, const void *p)
{
    return hk_extent_slab(e, ((uintptr_t)p - e->base) >> HK_UNIT_SHIFT);
}

/* Puts a packed block that was in a magazine into the lists of free blocks. */
void hk_packed_put(hak_ctx *ctx, void *p);
/* Returns the units of the live run at p to the space. */
void hk_run_put(hak_ctx *ctx, hk_extent *e, void *p);
/* Returns the units of a run that was in a magazine. A second free may have given them back before. */
void hk_run_give(hak_ctx *ctx, void *p);

#endif

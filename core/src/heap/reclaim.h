/* Asks the holders of spare memory to give it back, so that a context need not grow, or can. Whoever takes
 * units for blocks, or maps pages, calls this first; charging only charges, and units for the context's own
 * data are taken without it. The order is:
 *
 *   before fresh pages    the transfer caches of other heaps, then the magazines of larger blocks: what lies
 *                         there is resident, and fresh pages beside it would raise the peak
 *   for fresh pages       cached big blocks, as many bytes as the pages have: at a new peak each fresh page
 *                         purges a retained one
 *   a charge is refused   all cached big blocks, and the room of live ones
 *   an allocation fails   everything that is not a live block, see hk_reclaim_empty(); in all heaps of a
 *                         shared context, see api/trim.c */
#ifndef HK_RECLAIM_H
#define HK_RECLAIM_H

#include "heap/units.h"

/* Takes units for blocks: charged, recorded (id, kind, units) and in the context's list, after others were
 * asked as above. NULL = failed. */
hk_slab *hk_units_take_as(hak_ctx *ctx, size_t units, unsigned kind, hk_want want, bool *zero);
HK_INLINE hk_slab *hk_units_take(hak_ctx *ctx, size_t units, unsigned kind, bool *zero)
{
    return hk_units_take_as(ctx, units, kind, HK_WANT_DIRTY, zero);
}
/* Whether the context is charged what its units and big blocks take, for assertions. One with drawn blocks is
 * always right: these are charged beside. A step for each slab, run and big block. */
bool hk_charged_right(hak_ctx *ctx);
/* Gives back empty slabs, units set aside and cached big blocks, after magazines were emptied. Takes a step
 * for each class, not for each slab. */
void hk_reclaim_empty(hak_ctx *ctx);

#endif

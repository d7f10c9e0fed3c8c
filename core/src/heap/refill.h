/* Gets blocks at hand for a class: from its current slab, a partial slab, another heap or fresh units; and
 * gives a class its magazine. */
#ifndef HK_REFILL_H
#define HK_REFILL_H

#include "heap/magazine.h"

/* A class leaves packed units for slabs of its own. false = no memory. */
bool hk_class_open(hak_ctx *ctx, unsigned sc);
/* Moves up to `want` blocks, in address order, from slabs to the empty magazine; takes a new slab if
 * there is none. false = no memory. */
bool hk_slab_refill(hak_ctx *ctx, hk_bin *bin, unsigned want);
/* The same from the current slab, which the bin has, alone. false = it has none for magazines. */
bool hk_slab_refill_here(hak_ctx *ctx, hk_bin *bin, unsigned want);
/* Whether the class has free blocks in its magazine or slabs. */
bool hk_class_has_free(const hak_ctx *ctx, const hk_bin *bin);
/* The next wider class with free blocks, however wide, for when there is no other memory; HK_SMALL_CLASSES =
 * none. */
unsigned hk_class_wider(hak_ctx *ctx, unsigned sc);

#endif

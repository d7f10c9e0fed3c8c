/* The ladder: where a block comes from when the magazine of its size has none, cheapest source first.
 *
 *   region              hk_packed_cut          a young heap cuts the block               } alloc.c, without
 *   slab                hk_slab_refill_here    the class's current slab fills half a      } a call to here
 *                                              magazine                                   }
 *   packed again        hk_packed_again        a free packed block of the class           }
 *   incoming            hk_transfer_refill     blocks that other threads freed
 *   packed              hk_packed_alloc        the class has no slabs yet
 *   beside slabs        hk_packed_beside_slabs the class has some, which are full, and a limit is near
 *   borrowed            hk_borrow_class        a thread's heap has free blocks of a slightly wider class
 *   partial, stolen,    hk_slab_refill         a slab of the class with free blocks; one of another thread's
 *   fresh                                      heap; units, for which hk_units_take() asks others to yield
 *   LADDER              ladder.c               then the context gives up one thing after another
 *
 * Runs and big blocks are asked for as they are: magazine, units or freed big block, mapping, LADDER. */
#ifndef HK_LADDER_H
#define HK_LADDER_H

#include "heap/ctx.h"

/* A block of the class, of a local context or the calling thread's heap. n: bytes to take above 1 KiB, where
 * packed blocks have that size; 0 = those of the class. */
HK_NOINLINE void *hk_alloc_class(hak_ctx *ctx, unsigned sc, size_t n, hak_label label);
/* A block for n bytes from a slab of the class, never packed. */
void *hk_alloc_in_slab(hak_ctx *ctx, unsigned sc, size_t n, hak_label label, hak_site site);
/* A run or a big block: n above 32 KiB, or of large alignment. *zero tells whether it reads as zero. */
void *hk_alloc_large(hak_ctx *ctx, size_t align, size_t n, hak_label label, hak_site site, bool *zero);

#endif

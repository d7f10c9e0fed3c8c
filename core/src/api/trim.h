/* What a failed allocation makes a context give up. */
#ifndef HK_TRIM_H
#define HK_TRIM_H

#include "heap/ctx.h"

/* Caches and empty slabs, and packed units without blocks where much was freed, so that a failed allocation
 * may be tried again; those of the other heaps of a shared context too, where nobody is at work. Takes a step
 * for each class, whatever the heap's size. false = there was nothing. */
bool hk_give_up(hak_ctx *ctx);
/* Then packed units without blocks, however little was freed. Takes a step for each packed block, but none
 * where no packed block was freed since the last time. */
bool hk_give_up_packed(hak_ctx *ctx);

#endif

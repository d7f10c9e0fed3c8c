#ifndef HK_TRIM_H
#define HK_TRIM_H

#include "heap/ctx.h"

/* Caches and empty slabs, so that a failed allocation may be tried again; those of the other heaps of a
 * shared context too, where nobody is at work. false = there was nothing. */
bool hk_give_up(hak_ctx *ctx);

#endif

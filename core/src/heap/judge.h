/* Tells the judge of a context what the modules of heap/ found wrong; api/ is the judge. */
#ifndef HK_JUDGE_H
#define HK_JUDGE_H

#include "heap/ctx.h"

/* Hands a verdict on the memory at p to the judge of the context. A call and not a result: most are found in
 * the middle of emptying a magazine, and to hand results up would cost every free. See
 * docs/internals/allocation.md. */
HK_COLD void hk_found_wrong(const hak_ctx *ctx, hk_wrong what, const void *p);

#endif

/* HAK_DEBUG_QUARANTINE: freed blocks are held back, filled with a pattern that is looked at when they leave. */
#ifndef HK_QUARANTINE_H
#define HK_QUARANTINE_H

#include "heap/ctx.h"

/* p is freed, by a thread that holds no lock; *n: the size told. Returns the block that goes back in its place, of
 * which *n is HAK_NONE; p itself if it is not held back; NULL = none. */
HK_COLD void *hk_quarantine(hak_ctx *ctx, void *p, size_t *n);
/* All blocks leave. */
void hk_quarantine_end(hak_ctx *ctx);
/* Reports which blocks that are held back were written to; how many. */
size_t hk_quarantine_check(const hak_ctx *whole, hak_report_fn *report, void *user);

#endif

/* HAK_DEBUG_QUARANTINE: holds freed blocks back for a while, filled with a pattern, and checks the pattern
 * when they leave. */
#ifndef HK_QUARANTINE_H
#define HK_QUARANTINE_H

#include "heap/ctx.h"

/* The host frees p and told the size *n. Returns the block to free in its place, and sets *n to HAK_NONE; p
 * itself if it is not held back; NULL = none is to be freed. The caller holds no lock. */
HK_COLD void *hk_quarantine(hak_ctx *ctx, void *p, size_t *n);
/* Frees all blocks that are held back. Whether there were some. The caller holds no lock. */
bool hk_quarantine_end(hak_ctx *ctx);
/* Reports each block that was written to while it was held back. Returns how many. */
size_t hk_quarantine_check(const hak_ctx *whole, hak_report_fn *report, void *user);
/* Whether a block of n bytes holds HK_POISON_FREE. */
bool hk_still_poisoned(const void *block, size_t n);

#endif

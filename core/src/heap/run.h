/* Runs: blocks of whole units, above 32 KiB and up to 1 MiB; smaller blocks if slabs do not have their
 * alignment. */
#ifndef HK_RUN_H
#define HK_RUN_H

#include "heap/put.h"

/* *zero tells whether the block reads as zero. */
void *hk_run_alloc(hak_ctx *ctx, size_t n, hak_label label, bool *zero);
/* Lengthens the run at p of a local context, when there is no memory for both the old and the new one: it moves unit by
 * unit, from its end, and each old unit goes back before the next one is copied. Returns the new block with the old
 * one's label; NULL = cannot; nothing changed. */
HK_COLD void *hk_run_move(hak_ctx *ctx, hk_extent *e, void *p, size_t n);
/* Resizes a run in place. false = cannot; nothing changed. */
bool hk_run_resize(hak_ctx *ctx, hk_extent *e, void *p, size_t n);

#endif

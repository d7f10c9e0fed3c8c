/* Runs: blocks of whole units, above 32 KiB and up to 1 MiB; smaller blocks if slabs do not have their
 * alignment. */
#ifndef HK_RUN_H
#define HK_RUN_H

#include "heap/put.h"

/* *zero tells whether the block reads as zero. */
void *hk_run_alloc(hak_ctx *ctx, size_t n, hak_label label, bool *zero);
/* Resizes a run in place. false = cannot; nothing changed. */
bool hk_run_resize(hak_ctx *ctx, hk_extent *e, void *p, size_t n);

#endif

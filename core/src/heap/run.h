/* Runs: blocks of whole units, above 32 KiB and up to 1 MiB; smaller ones where slabs do not have the
 * alignment. */
#ifndef HK_RUN_H
#define HK_RUN_H

#include "heap/ctx.h"

/* *zero tells whether the block reads as zero. */
void *hk_run_alloc(hak_ctx *ctx, size_t n, hak_label label, bool *zero);
/* Runs kept at hand by the class of this kind, if any. */
unsigned hk_run_magazine(const hak_ctx *ctx, unsigned kind);
/* Whether magazines of runs may take so many bytes more: all of them together hold at most a 32nd of what is
 * live, and 2 MiB. */
bool hk_run_keep_more(hak_ctx *ctx, size_t more);
/* Frees a run whose magazine, if any, is full. */
void hk_run_free(hak_ctx *ctx, hk_extent *e, unsigned kind, void *p);
/* Returns the units of a run that was in a magazine to the space. */
void hk_run_give(hak_ctx *ctx, void *p);
/* Resizes a run in place. false = cannot; nothing changed. */
bool hk_run_resize(hak_ctx *ctx, hk_extent *e, void *p, size_t n);

#endif

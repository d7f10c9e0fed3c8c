/* Gives a magazine to a class whose runs come and go. */
#ifndef HK_RUN_MAGAZINE_H
#define HK_RUN_MAGAZINE_H

#include "heap/run.h"

/* Runs kept at hand by the class of this kind, if any. */
unsigned hk_run_magazine(const hak_ctx *ctx, unsigned kind);
/* Frees a run whose magazine, if any, is full. */
void hk_run_free(hak_ctx *ctx, hk_extent *e, unsigned kind, void *p);

#endif

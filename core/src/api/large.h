/* Blocks above 32 KiB: runs of units, and blocks with mappings of their own. */
#ifndef HK_LARGE_H
#define HK_LARGE_H

#include "heap/ctx.h"

/* Allocates n bytes, above 32 KiB or of large alignment. *zero tells whether the block reads as zero. */
void *hk_alloc_large(hak_ctx *ctx, size_t align, size_t n, hak_label label, hak_site site, bool *zero);

#endif

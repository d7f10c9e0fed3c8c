/* What the fast paths in alloc.c fall back to. */
#ifndef HK_ALLOC_H
#define HK_ALLOC_H

#include "heap/ctx.h"

HK_NOINLINE void *hk_alloc_slow(hak_ctx *ctx, size_t n, hak_label label, hak_site site);
/* n: the size that a sized free told, or HAK_NONE. kind: hk_kind_in_window(ctx, p). */
HK_NOINLINE void hk_free_slow(hak_ctx *ctx, void *p, size_t n, uint32_t kind);
/* Blocks above 32 KiB, or of large alignment. *zero tells whether the block reads as zero. */
void *hk_alloc_large(hak_ctx *ctx, size_t align, size_t n, hak_label label, hak_site site, bool *zero);
/* Of a slab of the class, never packed. */
void *hk_alloc_in_slab(hak_ctx *ctx, unsigned class, hak_label label);

#endif

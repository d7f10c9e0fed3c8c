/* Packed blocks above 1 KiB. Classes are an eighth apart there, so a block has the size that was asked for,
 * rounded up to 16, not that of its class. Such a block is cut from the end of a free block or of the
 * region. So large blocks lie apart from small ones, which would split the room that large blocks leave, and the
 * region stays where it is. */
#ifndef HK_PACKED_LARGE_H
#define HK_PACKED_LARGE_H

#include "heap/ctx.h"

/* A block of n bytes, above 1 KiB. NULL = no memory, or the context has its units. */
void *hk_packed_large(hak_ctx *ctx, size_t n, hak_label label);

#endif

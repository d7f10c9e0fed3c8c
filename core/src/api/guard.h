/* Drawn blocks of HAK_DEBUG_GUARD, for the allocation paths. */
#ifndef HK_API_GUARD_H
#define HK_API_GUARD_H

#include "heap/guard.h"

/* A block is due: draws anew, and makes it. align 0: that of any block of this size. ctx is no shared one. NULL = it is
 * to be had elsewhere. */
HK_COLD void *hk_guard_new(hak_ctx *ctx, size_t align, size_t n, hak_label label, hak_site site);
/* An allocation of more than that alignment, of a context with HAK_DEBUG_GUARD. NULL = it is not due. */
HK_COLD void *hk_guard_aligned(hak_ctx *ctx, size_t align, size_t n, hak_label label, hak_site site);

#endif

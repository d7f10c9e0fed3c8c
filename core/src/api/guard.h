/* Drawn blocks of HAK_DEBUG_GUARD, for the allocation paths. */
#ifndef HK_API_GUARD_H
#define HK_API_GUARD_H

#include "heap/guard.h"

/* The count has reached 0: draws the next one and makes a drawn block. align 0 = as any block of this size.
 * ctx is local, or the heap of a thread. NULL = no drawn block could be made; the caller allocates as
 * usual. */
HK_COLD void *hk_guard_new(hak_ctx *ctx, size_t align, size_t n, hak_label label, hak_site site);
/* Counts an allocation with an alignment of its own, in a context with HAK_DEBUG_GUARD. NULL = it was not
 * drawn. */
HK_COLD void *hk_guard_aligned(hak_ctx *ctx, size_t align, size_t n, hak_label label, hak_site site);

#endif

/* Checks that cost: the allocation and free paths of HAK_DEBUG_CHECK and HAK_DEBUG_POISON. */
#ifndef HK_CHECK_H
#define HK_CHECK_H

#include "heap/ctx.h"

/* A block of an opened class, one at a time, without magazine. NULL = no memory. */
void *hk_check_alloc(hak_ctx *ctx, hk_bin *bin, hak_label label);
/* Notes that n bytes were asked for with p, which may be NULL. Gives p; or frees it, if there is no memory
 * for the note, and gives NULL. No lock of the context is held. */
void *hk_check_note(hak_ctx *ctx, void *p, size_t n);
/* The same where the context may not check. */
static inline void *hk_check_new(hak_ctx *ctx, void *p, size_t n)
{
    return HK_LIKELY(!ctx->debug) ? p : hk_check_note(ctx, p, n);
}

/* Whether a block of n bytes holds HK_POISON_FREE. */
bool hk_still_poisoned(const void *block, size_t n);

#endif

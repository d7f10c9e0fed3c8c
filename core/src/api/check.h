/* The allocation and free paths of HAK_DEBUG_CHECK and HAK_DEBUG_POISON, apart because the checks cost
 * time. */
#ifndef HK_CHECK_H
#define HK_CHECK_H

#include "heap/ctx.h"

/* Takes one block of a class that has slabs, past the magazine. NULL = no memory. */
void *hk_check_alloc(hak_ctx *ctx, hk_bin *bin, hak_label label);
/* Records that n bytes were asked for with p, which may be NULL. Returns p; or, if there is no memory for the
 * record, frees p and returns NULL. The caller holds no lock of the context. */
void *hk_check_note(hak_ctx *ctx, void *p, size_t n);
/* The same for a context that may or may not check. */
static inline void *hk_check_new(hak_ctx *ctx, void *p, size_t n)
{
    return HK_LIKELY(!ctx->debug) ? p : hk_check_note(ctx, p, n);
}

/* The same for a new block, whose allocation HAK_DEBUG_TRACE records as well. */
void *hk_check_made(hak_ctx *ctx, void *p, size_t n, hak_label label, hak_site site);
static inline void *hk_check_first(hak_ctx *ctx, void *p, size_t n, hak_label label, hak_site site)
{
    return HK_LIKELY(!ctx->debug) ? p : hk_check_made(ctx, p, n, label, site);
}

#endif

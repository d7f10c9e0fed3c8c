/* The account of a context: its live blocks, and the bytes with which it is charged. */
#ifndef HK_ACCOUNT_H
#define HK_ACCOUNT_H

#include "heap/ctx.h"

/* Accounts of live blocks, those in magazines included. */
HK_INLINE void hk_count_in(hak_ctx *ctx, size_t bytes, size_t blocks)
{
    hk_add(&ctx->live_bytes, bytes);
    hk_add(&ctx->live_blocks, blocks);
}

/* A peak is recorded when live bytes fall, so that allocations need not look at it. */
HK_INLINE void hk_count_out(hak_ctx *ctx, size_t bytes, size_t blocks)
{
    size_t live = hk_get(&ctx->live_bytes);
    HK_ASSERT(live >= bytes && hk_get(&ctx->live_blocks) >= blocks);
    if (live > hk_get(&ctx->account.peak)) hk_set(&ctx->account.peak, live);
    hk_set(&ctx->live_bytes, live - bytes);
    hk_sub(&ctx->live_blocks, blocks);
}

/* Contexts with a quota are listed in their space, so that the end of the space can settle their accounts.
 * hk_account_end takes what is charged out of the quota. */
void hk_account_begin(hak_ctx *ctx);
void hk_account_end(hak_ctx *ctx);
/* Charges committed bytes against limit and quota, and notes pressure. Callers that ask others for memory
 * first: see reclaim.h. */
bool hk_charge(hak_ctx *ctx, size_t n);
void hk_uncharge(hak_ctx *ctx, size_t n);
/* Undoes a charge after a failed commit. */
void hk_refund(hak_ctx *ctx, size_t n);
/* Returns the bytes that the context has committed, or is expected to commit. */
HK_INLINE size_t hk_expected(const hak_ctx *ctx)
{
    return hk_max(hk_get(&ctx->account.committed), ctx->settings.expected);
}

/* Returns the least hard limit that holds for the context; 0 = none. */
HK_INLINE size_t hk_hard_least(const hak_ctx *ctx)
{
    size_t hard = hk_get(&ctx->account.hard);
    return HK_LIKELY(!ctx->account.quota) ? hard : hk_quota_least(ctx->account.quota, hard);
}

/* Returns the bytes below the limit, which is *hard; HAK_NONE = there is no limit. */
HK_INLINE size_t hk_account_room(const hak_ctx *ctx, size_t *hard)
{
    *hard = hk_hard_least(ctx);
    size_t committed = hk_get(&ctx->account.committed);
    return !*hard ? HAK_NONE : committed < *hard ? *hard - committed : 0;
}
/* Whether so little of a limit is left that a class without slabs takes none which packed units can serve as
 * well. */
bool hk_packed_scarce(const hak_ctx *ctx);
enum { HK_SLABS_FREE = 4 << 20 }; /* several times what partly used slabs of all classes have free */
/* Whether the limit is so small that a few slabs, or magazines of all classes, are a large part of it. */
HK_INLINE bool hk_packed_limited(const hak_ctx *ctx)
{
    size_t hard = hk_hard_least(ctx);
    return hard && hard < HK_SLABS_FREE;
}

#endif

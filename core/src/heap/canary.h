/* HAK_DEBUG_CANARY: the bytes of a block behind the size asked for, at least 8, hold a pattern that depends
 * on the address and on the context. asked.h has the size asked for. */
#ifndef HK_CANARY_H
#define HK_CANARY_H

#include "heap/asked.h"

/* What to take for n bytes, so that there is room for the pattern, and the alignment stays. Absurd sizes stay
 * absurd. */
HK_INLINE size_t hk_with_canary(const hak_ctx *ctx, size_t n)
{
    if (HK_LIKELY(!(ctx->debug & HAK_DEBUG_CANARY)) || n > HK_SIZE_MOST) return n;
    n = hk_max(n, 1);
    return n + (n % 16 ? 8 : 16);
}

/* Writes the pattern behind n bytes of the live block p. */
HK_COLD void hk_canary_write(const hak_ctx *ctx, const void *p, size_t n);
/* Whether it is as it was written. */
HK_COLD bool hk_canary_whole(const hak_ctx *ctx, const void *p);
/* What of a block of `size` bytes the program may use; 0 = it waits in quarantine. */
HK_COLD size_t hk_canary_usable(const hak_ctx *ctx, const void *p, size_t size);

#endif

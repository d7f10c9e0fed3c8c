/* api/: the functions of hakmem.h. This folder may include all others. It checks arguments and options, and
 * reports what is wrong, before it calls anything below. The hot path is alloc.c up to its heading "Slow
 * paths"; this header has what the fast paths fall back to. */
#ifndef HK_ALLOC_H
#define HK_ALLOC_H

#include "api/errors.h"
#include "heap/block.h"
#include "heap/label.h"

HK_NOINLINE void *hk_alloc_slow(hak_ctx *ctx, size_t n, hak_label label, hak_site site);

/* count * n. false = it overflows, which is reported and counted. */
HK_INLINE bool hk_total(hak_ctx *ctx, size_t count, size_t n, size_t *total)
{
    if (HK_LIKELY(!__builtin_mul_overflow(count, n, total))) return true;
    hk_error(ctx, HAK_E_OVERFLOW, NULL, "calloc: count * n overflows");
    hk_fail(ctx);
    return false;
}

/* Whether a block of `size` bytes can take the label: a small packed one moves for a large label. */
HK_INLINE bool hk_takes_label(const hak_ctx *ctx, const void *p, size_t size, int label)
{
    if (HK_LIKELY(label <= HK_HALF_MOST || size >= HK_TWO_HALVES || !ctx->labels.on)) return true;
    return !hk_is_packed(ctx, p) || hk_packed_label_fits(size, hk_label_clamp((hak_label)label));
}

/* Gives the live block another label. A packed one keeps its own if it cannot take this one. */
void hk_label_give(const hak_ctx *ctx, void *p, hak_label label);

/* A block that is reallocated stays where it is. */
HK_INLINE void *hk_stay(const hak_ctx *ctx, void *p, int label)
{
    if (label != HK_KEEP_LABEL && ctx->labels.on) hk_label_give(ctx, p, (hak_label)label);
    return p;
}

#endif

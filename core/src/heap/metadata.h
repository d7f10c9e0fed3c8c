/* Memory for the context's own data, which lives as long as the context, and for its bins. */
#ifndef HK_METADATA_H
#define HK_METADATA_H

#include "heap/units.h"

/* The context's own data: never freed one by one. NULL = failed. */
void *hk_meta_alloc(hak_ctx *ctx, size_t n);
/* The same where there is room for n, a multiple of 16, already; else NULL. */
HK_INLINE void *hk_meta_quick(hak_ctx *ctx, size_t n)
{
    char *p = ctx->meta.at;
    if (HK_UNLIKELY((size_t)(ctx->meta.end - p) < n)) return NULL;
    ctx->meta.at = p + n;
    return p;
}
/* The same in units of its own: n bytes of them, for hk_units_give. NULL = failed, or more than a chunk. */
hk_slab *hk_meta_units(hak_ctx *ctx, size_t n, bool *zero);
/* Units that n bytes take, with what is beside them. */
HK_INLINE size_t hk_meta_units_for(size_t n)
{
    return (n + 2 * HK_BESIDE + HK_UNIT - 1) >> HK_UNIT_SHIFT;
}
/* Where its bytes are, and how many there is room for. */
HK_INLINE void *hk_meta_start(const hak_ctx *ctx, const hk_slab *s)
{
    return hk_slab_address(ctx->space, s) + HK_BESIDE;
}
HK_INLINE size_t hk_meta_bytes(const hk_slab *s)
{
    return ((size_t)s->units << HK_UNIT_SHIFT) - 2 * HK_BESIDE;
}
/* Gives the context wide classes; before it has bins. */
void hk_bins_widen(hak_ctx *ctx);
/* The bins, made on first need. false = no memory. */
bool hk_bins_make(hak_ctx *ctx);

#endif

/* Zero-filled blocks. */
#include "api/alloc.h"
#include "api/ladder.h"

void *hak_calloc_cs(hak_ctx *ctx, size_t count, size_t n, hak_label label, hak_site site)
{
    size_t total;
    if (!hk_total(ctx, count, n, &total)) return NULL;
    if (total > HK_SMALL_MAX) {
        bool zero;
        void *p = hk_alloc_large(ctx, HK_PAGE, total, label, site, &zero);
        if (p && !zero) memset(p, 0, total);
        return p;
    }
    void *p = hak_alloc_cs(ctx, total, label, site);
    return p ? memset(p, 0, total) : NULL;
}

void *hak_calloc(hak_ctx *ctx, size_t count, size_t n)
{
    return hak_calloc_cs(ctx, count, n, 0, 0);
}

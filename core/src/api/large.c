#include "api/large.h"

#include "api/check.h"
#include "api/errors.h"
#include "api/limits.h"
#include "api/profile.h"
#include "api/quarantine.h"
#include "api/trim.h"
#include "heap/big.h"
#include "heap/canary.h"
#include "heap/run.h"

static HK_COLD void *absurd(hak_ctx *ctx)
{
    hk_error(ctx, HAK_E_OVERFLOW, NULL, "allocate: the size is absurd");
    return hk_fail(ctx);
}

static void *alloc_large(hak_ctx *ctx, size_t align, size_t n, hak_label label, hak_site site, bool *zero)
{
    if (n <= HK_RUN_MAX && align <= HK_UNIT) return hk_run_alloc(ctx, hk_max(n, 1), label, zero);
    return hk_big_alloc(ctx, align, n, label, site, zero);
}

/* What a context that checks or has a profile does with a new large block. */
static HK_COLD void *new_large(hak_ctx *heap, void *p, size_t n, hak_label label, hak_site site, bool *zero)
{
    size_t size = hk_block_size(heap, p);
    if (heap->debug & HAK_DEBUG_POISON) {
        memset(p, HK_POISON_NEW, size);
        *zero = false;
    }
    if (heap->checked & HK_OBSERVED) hk_profile_enter(heap);
    return hk_profile_new_block(heap, hk_check_first(heap, p, n, label, site), size, label, site);
}

void *hk_alloc_large(hak_ctx *ctx, size_t align, size_t n, hak_label label, hak_site site, bool *zero)
{
    if (n > HK_SIZE_MOST) return absurd(ctx);
    hak_ctx *heap = hk_heap_for(ctx);
    if (!heap) return hk_fail(ctx);
    size_t with = hk_with_canary(heap, n);
    hk_enter(heap);
    void *p = alloc_large(heap, align, with, label, site, zero);
    if (HK_UNLIKELY(!p) && hk_give_up(heap)) p = alloc_large(heap, align, with, label, site, zero);
    if (HK_UNLIKELY(!p) && hk_give_up_packed(heap)) p = alloc_large(heap, align, with, label, site, zero);
    hk_leave(heap);
    if (HK_UNLIKELY(!p) && hk_quarantine_end(heap)) return hk_alloc_large(ctx, align, n, label, site, zero);
    if (!p) return hk_fail(ctx);
    return HK_LIKELY(!heap->debug) ? p : new_large(heap, p, n, label, site, zero);
}

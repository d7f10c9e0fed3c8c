#include "heap/block_free.h"

#include "heap/big.h"
#include "heap/block.h"
#include "heap/canary.h"
#include "heap/guard.h"
#include "heap/judge.h"
#include "heap/packed.h"
#include "heap/row.h"
#include "heap/run_magazine.h"

void hk_check_size(const hak_ctx *ctx, const void *p, size_t told)
{
    if (told != HAK_NONE && told != hk_asked(ctx, p)) hk_found_wrong(ctx, HK_WRONG_SIZE, p);
    if (!(ctx->debug & HAK_DEBUG_CANARY) || hk_canary_whole(ctx, p)) return;
    hk_found_wrong(ctx, HK_WRONG_CANARY, p);
    hk_canary_write(ctx, p, hk_asked(ctx, p)); /* told once */
}

void hk_check_free(hak_ctx *ctx, void *p, size_t n)
{
    size_t size = hk_block_size(ctx, p);
    if (size == 0) return; /* the free itself finds what is wrong */
    hk_check_size(ctx, p, n);
    if (ctx->debug & HAK_DEBUG_POISON) memset(p, HK_POISON_FREE, size);
}

static void free_big(hak_ctx *ctx, void *p)
{
    hk_guard_slot *drawn = hk_guard_find(ctx, p);
    hk_big *b = drawn ? NULL : hk_big_find(ctx, p);
    if (drawn) hk_guard_free(ctx, drawn);
    else if (b && !b->cached) hk_big_free(ctx, b);
    else hk_found_wrong(ctx, HK_WRONG_BLOCK, p);
}

void hk_block_free(hak_ctx *ctx, void *p, size_t n)
{
    hk_extent *e;
    uint32_t kind = hk_kind_at(ctx, p, &e);
    if (HK_UNLIKELY(ctx->debug & HAK_DEBUG_CHECK)) hk_check_free(ctx, p, n);
    if (kind < HK_SMALL_CLASSES) hk_slab_free(ctx, e, kind, p);
    else if (kind < HK_BINS) hk_run_free(ctx, e, kind, p);
    else if (kind == HK_KIND_PACKED) hk_packed_free(ctx, p);
    else free_big(ctx, p);
}

bool hk_block_put_back(hak_ctx *ctx, void *p)
{
    hk_extent *e;
    uint32_t kind = hk_kind_at(ctx, p, &e);
    if (HK_LIKELY(kind < HK_SMALL_CLASSES)) hk_slab_free(ctx, e, kind, p);
    else if (kind < HK_BINS) hk_run_give(ctx, p);
    else if (hk_owner(ctx, p) != ctx) return false;
    else if (kind == HK_KIND_PACKED) hk_packed_put_back(ctx, p);
    else free_big(ctx, p);
    return true;
}

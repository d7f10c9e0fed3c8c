#include "api/watch.h"

#include "api/errors.h"
#include "api/limits.h"
#include "api/quarantine.h"
#include "api/trace.h"
#include "api/trim.h"
#include "heap/asked.h"
#include "heap/block.h"
#include "heap/block_free.h"
#include "heap/canary.h"
#include "heap/label.h"
#include "heap/placement.h"
#include "heap/refill.h"

/* ---- New blocks ------------------------------------------------------------------------------------ */

void *hk_check_alloc(hak_ctx *ctx, hk_bin *bin, hak_label label)
{
    const hk_slab *before = bin->slab, *next = bin->first ? hk_slab_at(ctx->space, bin->first) : NULL;
    uint32_t fresh = before ? before->fresh : 0, next_fresh = next ? next->fresh : 0;
    if (!hk_slab_refill(ctx, bin, 1)) return NULL;
    unsigned char *p = *--bin->top;
    size_t size = hk_classes[bin->kind].size;
    /* A block that was never handed out holds what its pages held, and no pattern. */
    bool reused = bin->slab == before ? before->fresh == fresh
                  : bin->slab == next ? next->fresh == next_fresh
                                      : false;
    if (ctx->checked & HK_PLACED) {
        if (!reused && ctx->debug & HAK_DEBUG_POISON) memset(p, HK_POISON_FREE, size);
        p = hk_placement_draw(ctx, p);
        reused = true;
    }
    if (ctx->debug & HAK_DEBUG_POISON && reused && !hk_still_poisoned(p, size))
        hk_error(ctx, HAK_E_USE_AFTER_FREE, p, "allocate: a free block was written to");
    if (ctx->labels.on) hk_label_set(hk_extent_of(ctx->space, p), bin->kind, p, label);
    return p;
}

static bool note_asked(hak_ctx *ctx, const void *p, size_t n)
{
    if (hk_asked_set(ctx, p, n, false)) return true;
    hk_whole_lock(hk_whole(ctx));
    bool done = hk_asked_set(ctx, p, n, true);
    hk_whole_unlock(hk_whole(ctx));
    return done;
}

/* The context gives up what it has at hand, as for a block. */
static bool make_room(hak_ctx *ctx)
{
    hak_ctx *heap = hk_heap_for(ctx);
    if (!heap) return false;
    hk_enter(heap);
    bool done = hk_give_up(heap);
    hk_leave(heap);
    return done || hk_quarantine_end(ctx);
}

void *hk_watch_again(hak_ctx *ctx, void *p, size_t n)
{
    if (!p || !(ctx->debug & HAK_DEBUG_CHECK)) return p;
    if (!note_asked(ctx, p, n) && !(make_room(ctx) && note_asked(ctx, p, n))) {
        hak_free(ctx, p);
        return hk_fail(ctx);
    }
    if (ctx->debug & HAK_DEBUG_CANARY) hk_canary_write(ctx, p, n);
    return p;
}

/* Without a profile. */
static void *new_block(hak_ctx *ctx, void *p, size_t n, hak_label label, hak_site site)
{
    p = hk_watch_again(ctx, p, n);
    if (p) hk_trace_note(ctx, HAK_TRACE_ALLOC, p, n, label, site);
    return p;
}

void *hk_watched_new(hak_ctx *heap, void *p, size_t n, size_t size, hak_label label, hak_site site)
{
    if (p && heap->debug & HAK_DEBUG_POISON) memset(p, HK_POISON_NEW, size);
    p = new_block(heap, p, n, label, site);
    if (!(heap->checked & HK_PROFILED) || !p) return p;
    heap->sampling.left -= (int64_t)size;
    if (heap->sampling.left < 0) hk_profile_add(heap, p, 0, size, label, site);
    return p;
}

/* ---- Frees ----------------------------------------------------------------------------------------- */

void *hk_watch_free(hak_ctx *ctx, void *p, size_t *n)
{
    if (*n == HK_NOTED) *n = HAK_NONE;
    else if (p) hk_trace_freed(ctx, p, 0);
    return ctx->debug & HAK_DEBUG_QUARANTINE ? hk_quarantine(ctx, p, n) : p;
}

/* ---- Other sizes ----------------------------------------------------------------------------------- */

size_t hk_watch_resize(hak_ctx *ctx, void *p, size_t told, size_t n, int label, hak_site site)
{
    size_t size = hak_usable_size(ctx, p);
    if (HK_UNLIKELY(size == 0)) {
        hk_trace_note(ctx, HAK_TRACE_REALLOC, p, n, 0, site);
        hk_misuse(ctx, p);
        hk_fail(ctx);
    } else if (HK_UNLIKELY(ctx->debug & HAK_DEBUG_CHECK)) {
        hk_trace_note(ctx, HAK_TRACE_REALLOC, p, n, hk_label_after(ctx, p, label), site);
        hk_check_size(ctx, p, told);
    }
    return size;
}

void *hk_watch_moved(hak_ctx *ctx, const void *p, void *q, size_t size, size_t n, int label, hak_site site)
{
    hak_label given = hk_label_after(ctx, q, label);
    if (hk_profile_of(ctx)) hk_profile_resized(ctx, p, q, size, hk_block_size(ctx, q), given, site);
    return q == p ? hk_watch_again(ctx, q, n) : new_block(ctx, q, n, given, site);
}

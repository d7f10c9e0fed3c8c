#include "api/ladder.h"

#include "api/errors.h"
#include "api/limits.h"
#include "api/quarantine.h"
#include "api/trim.h"
#include "api/watch.h"
#include "heap/big.h"
#include "heap/canary.h"
#include "heap/label.h"
#include "heap/packed.h"
#include "heap/refill.h"
#include "heap/run.h"
#include "shared/transfer.h"

/* ---- Sources --------------------------------------------------------------------------------------- */

/* The slow path of a context that checks or is profiled. */
static HK_NOINLINE void *alloc_in_slab_watched(hak_ctx *ctx, hk_bin *bin, hak_label label)
{
    if (ctx->checked & HK_CHECKED) return hk_check_alloc(ctx, bin, label);
    void **shut = hk_bin_is_shut(bin) ? bin->lo : NULL, *p = NULL;
    if (shut) bin->lo = bin->slots;
    if (bin->top != bin->lo || hk_slab_refill(ctx, bin, hk_refill_of(bin))) {
        p = *--bin->top;
        if (ctx->labels.on) hk_label_set(hk_extent_of(ctx->space, p), bin->kind, p, label);
    }
    if (shut) hk_bin_shut(bin, shut);
    return p;
}

static void *alloc_in_slab(hak_ctx *ctx, unsigned sc, hak_label label)
{
    hk_bin *bin = hk_bin_of(ctx, sc);
    if (!bin->slots || hk_packed_keeps(ctx, sc)) {
        if (!hk_class_open(ctx, sc)) return NULL;
        bin = hk_bin_of(ctx, sc);
    }
    if (HK_UNLIKELY(ctx->checked)) return alloc_in_slab_watched(ctx, bin, label);
    if (bin->top == bin->lo && !hk_slab_refill(ctx, bin, hk_refill_of(bin))) return NULL;
    void *p = *--bin->top;
    if (ctx->labels.on) hk_label_set(hk_extent_of(ctx->space, p), sc, p, label);
    return p;
}

/* A class whose slabs are full. */
static HK_NOINLINE void *alloc_beside_slabs(hak_ctx *ctx, unsigned sc, size_t n, hak_label label)
{
    return hk_class_has_free(ctx, hk_bin_of(ctx, sc)) ? NULL : hk_packed_beside_slabs(ctx, sc, n, label);
}

static void *alloc_small(hak_ctx *ctx, unsigned sc, size_t n, hak_label label)
{
    bool packed = !hk_bin_of(ctx, sc)->slots || hk_packed_keeps(ctx, sc);
    void *p = packed ? hk_packed_alloc(ctx, sc, n, label) : alloc_beside_slabs(ctx, sc, n, label);
    if (p) return p;
    if (HK_UNLIKELY(ctx->role)) sc = hk_borrow_class(ctx, sc);
    else if (packed && hk_packed_has_rest(ctx)) return NULL;
    return alloc_in_slab(ctx, sc, label);
}

/* ---- The ladder ------------------------------------------------------------------------------------ */

/* What the usual sources could not serve. */
typedef struct request {
    unsigned sc;
    hak_label label;
    size_t n, align;
    hak_site site;
    bool *zero;
} request;

enum { ASK_NOBODY, ASK_ANY, ASK_SLAB, ASK_UNITS, ASK_PACKED, ASK_WIDER };
static void *ask(unsigned whom, hak_ctx *heap, const request *r)
{
    if (whom == ASK_ANY) return alloc_small(heap, r->sc, r->n, r->label);
    if (whom == ASK_SLAB) return alloc_in_slab(heap, r->sc, r->label);
    if (whom == ASK_PACKED) return hk_packed_last(heap, r->sc, r->n, r->label);
    if (whom == ASK_UNITS && r->n <= HK_RUN_MAX && r->align <= HK_UNIT)
        return hk_run_alloc(heap, hk_max(r->n, 1), r->label, r->zero);
    if (whom == ASK_UNITS) return hk_big_alloc(heap, r->align, r->n, r->label, r->site, r->zero);
    if (whom == ASK_NOBODY || hk_bins_none(heap)) return NULL;
    unsigned wider = hk_class_wider(heap, r->sc);
    return wider < HK_SMALL_CLASSES ? alloc_in_slab(heap, wider, r->label) : NULL;
}

/* What the context gives up, and who is asked if there was any, for a small block, one in a slab, a large
 * one. Cheap ways come first, as near a limit many allocations come here and are served from packed units;
 * all of these are searched for empty ones only before the result is NULL. Numbers, not functions: these would
 * be writable data in position-independent code. */
enum { GIVE_NOTHING, GIVE_CACHES, GIVE_PACKED }; /* see trim.h */
enum { SMALL, IN_SLAB, LARGE };
static const struct {
    uint8_t give, ask[3];
} LADDER[] = {
    {GIVE_NOTHING, {ASK_ANY, ASK_SLAB, ASK_UNITS}},
    {GIVE_CACHES, {ASK_ANY, ASK_SLAB, ASK_UNITS}},
    {GIVE_NOTHING, {ASK_PACKED}},
    {GIVE_PACKED, {ASK_ANY, ASK_SLAB, ASK_UNITS}},
    {GIVE_NOTHING, {ASK_PACKED}},
    {GIVE_NOTHING, {ASK_WIDER}},
};

static bool give_up_for(unsigned give, hak_ctx *heap)
{
    return give == GIVE_NOTHING || (give == GIVE_CACHES ? hk_give_up(heap) : hk_give_up_packed(heap));
}

/* Serves a request from this rung on. The heap is entered, and left afterwards. At the end of the ladder the
 * blocks in quarantine are freed, and it begins anew. */
static HK_NOINLINE void *climb(hak_ctx *heap, unsigned kind, unsigned from, const request *r)
{
    for (;; from = 0) {
        void *p = NULL;
        for (unsigned i = from; !p && i < sizeof LADDER / sizeof *LADDER; i++)
            if (LADDER[i].ask[kind] && give_up_for(LADDER[i].give, heap))
                p = ask(LADDER[i].ask[kind], heap, r);
        hk_leave(heap);
        if (p || !hk_quarantine_end(heap)) return p;
        hk_enter(heap);
    }
}

static HK_NOINLINE bool enter_class(hak_ctx *ctx, unsigned sc)
{
    if (HK_UNLIKELY(hk_pressed(ctx)) && !hk_may_allocate(ctx)) return false;
    if (ctx->role) {
        hk_heap_enter(ctx);
        if (hk_transfer_any(ctx)) hk_transfer_refill(ctx, sc);
    }
    return true;
}

static HK_NOINLINE void *climb_class(hak_ctx *ctx, unsigned sc, size_t n, hak_label label)
{
    void *p = climb(ctx, SMALL, 1, &(request){.sc = sc, .n = n, .label = label});
    return p ? p : hk_fail(ctx);
}

void *hk_alloc_class(hak_ctx *ctx, unsigned sc, size_t n, hak_label label)
{
    if (HK_UNLIKELY(ctx->role | ctx->account.pressure) && !enter_class(ctx, sc)) return hk_fail(ctx);
    void *p = alloc_small(ctx, sc, n, label);
    if (HK_UNLIKELY(!p)) return climb_class(ctx, sc, n, label);
    hk_leave(ctx);
    return p;
}

void *hk_alloc_in_slab(hak_ctx *ctx, unsigned sc, size_t n, hak_label label, hak_site site)
{
    hak_ctx *heap = hk_heap_for(ctx);
    if (!heap) return hk_fail(ctx);
    const request r = {.sc = sc, .label = label};
    hk_enter(heap);
    void *p = climb(heap, IN_SLAB, 0, &r);
    if (!p) return hk_fail(ctx);
    hk_watch_enter(heap);
    return hk_watch_new(heap, p, n, hk_classes[sc].size, label, site);
}

static HK_COLD void *absurd(hak_ctx *ctx)
{
    hk_error(ctx, HAK_E_OVERFLOW, NULL, "allocate: the size is absurd");
    return hk_fail(ctx);
}

void *hk_alloc_large(hak_ctx *ctx, size_t align, size_t n, hak_label label, hak_site site, bool *zero)
{
    if (n > HK_SIZE_MOST) return absurd(ctx);
    hak_ctx *heap = hk_heap_for(ctx);
    if (!heap) return hk_fail(ctx);
    const request r = {
        .n = hk_with_canary(heap, n), .align = align, .label = label, .site = site, .zero = zero};
    hk_enter(heap);
    void *p = climb(heap, LARGE, 0, &r);
    if (!p) return hk_fail(ctx);
    if (HK_LIKELY(!heap->debug)) return p;
    hk_watch_enter(heap);
    if (heap->debug & HAK_DEBUG_POISON) *zero = false;
    return hk_watch_new(heap, p, n, hk_block_size(heap, p), label, site);
}

/* The slow paths of contexts that are watched. A profile, and guard pages, shut the magazines, so that each
 * allocation comes here; most find a block at hand all the same. */
#include "api/watch.h"

#include "api/context.h"
#include "api/errors.h"
#include "api/ladder.h"
#include "api/limits.h"
#include "heap/batch.h"
#include "heap/block_free.h"
#include "heap/canary.h"
#include "heap/guard.h"
#include "heap/packed.h"
#include "heap/refill.h"
#include "heap/row.h"
#include "shared/thread_heap.h"
#include "shared/transfer.h"

/* Allocates in the heap of a thread, which nobody watched. The block counts if the heap learns of a profile as it is
 * entered. */
static HK_NOINLINE void *alloc_entered(hak_ctx *heap, unsigned sc, size_t n, hak_label label, hak_site site)
{
    void *p = hk_alloc_class(heap, sc, n, label);
    if (HK_LIKELY(!heap->checked)) return p;
    hk_watch_enter(heap);
    return hk_watch_new(heap, p, n, hk_classes[sc].size, label, site);
}

static HK_NOINLINE void *alloc_seen(hak_ctx *ctx, unsigned sc, size_t n, hak_label label, hak_site site)
{
    if (HK_LIKELY(!ctx->checked)) return alloc_entered(ctx, sc, n, label, site);
    if (!hk_may_allocate(ctx)) return hk_fail(ctx);
    size_t with = hk_with_canary(ctx, n);
    bool ignored;
    if (with > HK_SMALL_MAX) return hk_alloc_large(ctx, HK_PAGE, n, label, site, &ignored);
    if (with > n) sc = with <= 1024 ? hk_class_in(ctx, with) : hk_class_of(with);
    void *p = hk_alloc_class(ctx, sc, with, label);
    hk_watch_enter(ctx);
    return hk_watch_new(ctx, p, n, hk_classes[sc].size, label, site);
}

/* ---- Guard pages ----------------------------------------------------------------------------------- */

/* The count has reached 0: draws the next one and makes a drawn block. align 0 = as any block of this size.
 * NULL = no drawn block could be made. */
static HK_COLD void *alloc_drawn(hak_ctx *ctx, size_t align, size_t n, hak_label label, hak_site site)
{
    hk_drawing_of(ctx)->left = hk_guard_draw(ctx);
    if (n > HK_GUARD_MOST || align > HK_PAGE || !hk_may_allocate(ctx)) return NULL;
    hak_guard_event event;
    hk_guard_event_now(ctx, site, &event);
    size_t least = ctx->max_align || (n && n % 16 == 0) ? 16 : 8;
    hk_enter(ctx);
    void *p = hk_guard_alloc(ctx, hk_max(align, least), n, label, &event);
    hk_leave(ctx);
    hk_watch_enter(ctx);
    return hk_watch_new(ctx, p, n, hk_max(n, 1), label, site);
}

void *hk_guard_aligned(hak_ctx *ctx, size_t align, size_t n, hak_label label, hak_site site)
{
    if (ctx->role == HK_SHARED) ctx = hk_heap_here(ctx);
    return ctx && --hk_drawing_of(ctx)->left == 0 ? alloc_drawn(ctx, align, n, label, site) : NULL;
}

static HK_NOINLINE void *alloc_guarded(hak_ctx *ctx, unsigned sc, size_t n, hak_label label, hak_site site)
{
    hk_bin *bin = hk_bin_of(ctx, sc);
    void *p = HK_UNLIKELY(--hk_drawing_of(ctx)->left == 0) ? alloc_drawn(ctx, 0, n, label, site) : NULL;
    if (HK_UNLIKELY(p != NULL)) return p;
    if (HK_LIKELY(ctx->checked == HK_GUARDED && bin->top != bin->slots)) return hk_magazine_pop(bin, label);
    return alloc_seen(ctx, sc, n, label, site);
}

/* ---- Profiles -------------------------------------------------------------------------------------- */

/* A sample, as each allocation of an exact profile is, for which a block is at hand. */
static HK_NOINLINE void *alloc_sample(hak_ctx *ctx, unsigned sc, size_t n, hak_label label, hak_site site)
{
    if (HK_UNLIKELY(ctx->role || ctx->checked & HK_CHECKED)) return alloc_seen(ctx, sc, n, label, site);
    size_t size = hk_classes[sc].size;
    void *p = hk_magazine_pop(hk_bin_of(ctx, sc), label);
    hk_profile_add(ctx, p, hk_packed_keeps(ctx, sc) ? 0 : size, size, label, site);
    return p;
}

HK_INLINE void *alloc_counted(hak_ctx *ctx, unsigned sc, size_t n, hak_label label, hak_site site)
{
    if (ctx->checked & HK_GUARDED) return alloc_guarded(ctx, sc, n, label, site);
    hk_bin *bin = hk_bin_of(ctx, sc);
    int64_t left = ctx->sampling.left - hk_classes[sc].size;
    if (HK_UNLIKELY(bin->lo != HK_SHUT || bin->top == bin->slots)) return alloc_seen(ctx, sc, n, label, site);
    if (HK_UNLIKELY(left < 0)) return alloc_sample(ctx, sc, n, label, site);
    ctx->sampling.left = left;
    return hk_magazine_pop(bin, label);
}

static uint32_t draw_blocks(hak_ctx *heap, unsigned sc)
{
    hk_profile *k = hk_profile_of(heap);
    hk_profile_lock(k);
    int64_t bytes = hk_profile_draw(k);
    hk_profile_unlock(k);
    return (uint32_t)hk_min((uint64_t)bytes / hk_classes[sc].size, HK_BATCH_UNDRAWN - 1);
}

/* Whether the heap is to take part in what the profile is at by now, which hk_profile_enter() does. */
static bool behind(const hak_ctx *heap)
{
    const hk_profile *k = hk_profile_of(heap);
    return !atomic_load_explicit(&k->running, memory_order_relaxed) ||
           heap->sampling.run != atomic_load_explicit(&k->runs, memory_order_relaxed);
}

/* Blocks come to hand first, as without a profile; or the class has to borrow, which is not done here. */
static HK_NOINLINE void *batch_from_slabs(hak_ctx *heap, unsigned sc, hak_label label)
{
    hk_bin *bin = hk_bin_of(heap, sc);
    if (!bin->slots || hk_packed_keeps(heap, sc)) return NULL;
    hk_enter(heap);
    if (heap->role) hk_transfer_refill(heap, sc);
    void *p = !heap->role || hk_class_has_free(heap, bin) ? hk_batch_alloc(heap, sc, label) : NULL;
    hk_leave(heap);
    return p;
}

/* Takes a block of a batch, none of which is a sample. NULL = a sample is due, or there is no batch. Calls to
 * a shared context find here what is left of a batch: the table of that context leads past batches. */
static void *from_batch(hak_ctx *heap, unsigned sc, hak_label label)
{
    hk_bin *next = &hk_batches_of(heap)->next[sc];
    if (next->top > next->lo) return hk_magazine_pop(next, label);
    uint32_t *left = &hk_batches_of(heap)->left[sc];
    if (HK_UNLIKELY(*left == HK_BATCH_UNDRAWN)) *left = draw_blocks(heap, sc);
    if (HK_UNLIKELY(*left == 0)) {
        *left = draw_blocks(heap, sc);
        heap->sampling.left = 0; /* so that the next block is the sample, whatever its size */
        return NULL;
    }
    if (HK_UNLIKELY(hk_pressed(heap) || (heap->role && behind(heap)))) return NULL;
    if (HK_LIKELY(hk_batch_ready(heap, sc))) return hk_batch_quick(heap, sc, label);
    void *p = heap->role ? NULL : hk_batch_here(heap, sc, label);
    return HK_LIKELY(p) ? p : batch_from_slabs(heap, sc, label);
}

static HK_NOINLINE void *alloc_batched(hak_ctx *ctx, unsigned sc, size_t n, hak_label label, hak_site site)
{
    void *p = from_batch(ctx, sc, label);
    return HK_LIKELY(p) ? p : alloc_counted(ctx, sc, n, label, site);
}

void *hk_alloc_watched(hak_ctx *ctx, unsigned sc, size_t n, hak_label label, hak_site site)
{
    if (sc >= HK_BINS) return alloc_batched(ctx, sc - HK_BINS, n, label, site);
    return alloc_counted(ctx, sc, n, label, site);
}

/* ---- Frees ----------------------------------------------------------------------------------------- */

/* Frees a block of a watched unit fast, in a context that is profiled and nothing else: finds the kind that
 * WATCHED hides, then goes on as without a profile. A row may lie in such a unit: each free in it asks for the kind of
 * the unit first, and comes here. false = the block is of another kind. */
HK_INLINE bool free_as_usual(hak_ctx *ctx, void *p)
{
    hk_extent *e;
    uint32_t kind = hk_kind_at(ctx, p, &e);
    if (kind >= HK_SMALL_CLASSES || e != ctx->extent) return false;
    hk_bin *bin = hk_bin_of(ctx, kind);
    if (HK_UNLIKELY(!bin->slots)) return false;
    if (bin->top < bin->hi) *bin->top++ = p;
    else if (!hk_row_free(hk_row_of(bin), p)) hk_magazine_overflow(ctx, bin, p);
    return true;
}

void hk_free_watched(hak_ctx *ctx, void *p, size_t n)
{
    if (ctx->checked & HK_OBSERVED) hk_profile_freed(ctx, p);
    if (!ctx->role && ctx->checked == (HK_PROFILED | HK_OBSERVED) && free_as_usual(ctx, p)) return;
    if (ctx->checked & HK_GUARDED) hk_guard_freed_by(ctx, p, 0);
    hk_block_free(ctx, p, n);
    if (ctx->retired) hk_retire_check(ctx);
}

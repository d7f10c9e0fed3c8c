/* The hot paths. An allocation of up to 1 KiB looks its class up in a table, pops a block from the magazine
 * of the class, and stores the label if the context has labels. A free goes from the address to the unit, its
 * map entry and its class, and pushes the block on the magazine of the class. Neither touches the block or
 * the record of its slab. Everything else is in the slow paths below: refill from bitmaps (refill.c), packed
 * units (packed.c), runs, big blocks. */
#include "api/alloc.h"

#include "api/errors.h"
#include "api/ladder.h"
#include "api/trace.h"
#include "api/watch.h"
#include "heap/block.h"
#include "heap/block_free.h"
#include "heap/guard.h"
#include "heap/magazine.h"
#include "heap/packed.h"
#include "heap/refill.h"
#include "heap/row.h"
#include "heap/slab.h"
#include "shared/remote.h"
#include "shared/thread_heap.h"

static HK_NOINLINE void *alloc_empty(hak_ctx *ctx, size_t n, hak_label label, hak_site site,
                                     const hk_bin *bin);
/* n: the size that a sized free told, or HAK_NONE. kind: hk_kind_in_window(ctx, p). */
static HK_NOINLINE void free_other(hak_ctx *ctx, void *p, size_t n, uint32_t kind);
/* Of a block in a packed unit of the window that does not just go into a magazine: of the class of this bin; too
 * large for one look at these starts; any other, or no block at all. */
static HK_NOINLINE void free_packed_class(hak_ctx *ctx, void *p, size_t n, const hk_bin *bin);
static HK_NOINLINE void free_packed_wide(hak_ctx *ctx, void *p, size_t n, uintptr_t starts);
static HK_NOINLINE void free_packed_apart(hak_ctx *ctx, void *p, size_t n);

/* Of a shared context: makes the heap of this thread and allocates there. */
static HK_NOINLINE void *alloc_in_new_heap(hak_ctx *shared, size_t n, hak_label label, hak_site site)
{
    hak_ctx *heap = hk_heap_here(shared);
    return heap ? hak_alloc_cs(heap, n, label, site) : hk_fail(shared);
}

/* Makes the compiler compute the number of the bin anew: to keep it would take a register on the fast path.
 */
HK_INLINE hk_bin *apart(hk_bin *bin)
{
    __asm__("" : "+r"(bin));
    return bin;
}

/* A shared context's bins are empty: goes on with the same bin of the thread's heap. */
HK_INLINE void *alloc_by_shared(hak_ctx *shared, size_t n, hak_label label, hak_site site, hk_bin *bin)
{
    hak_ctx *heap = shared;
    if (HK_UNLIKELY(!hk_heap_quick(&heap))) return alloc_in_new_heap(shared, n, label, site);
    bin = (hk_bin *)(void *)((char *)heap->bins + ((char *)apart(bin) - (char *)shared->bins));
    return HK_LIKELY(hk_bin_filled(bin)) ? hk_magazine_pop(bin, label) : hk_alloc_slow(heap, n, label, site);
}

/* The same as a call, for functions that have no register left. */
static HK_NOINLINE void *alloc_by_shared_cs(hak_ctx *shared, size_t n, hak_label label, hak_site site,
                                            hk_bin *bin)
{
    return alloc_by_shared(shared, n, label, site, bin);
}

void *hak_alloc_cs(hak_ctx *ctx, size_t n, hak_label label, hak_site site)
{
    if (HK_LIKELY(n <= 1024)) {
        hk_bin *bin = hk_bin_of(ctx, hk_bin_in(ctx, n));
        if (HK_LIKELY(hk_bin_filled(bin))) return hk_magazine_pop(bin, label);
        if (ctx->role == HK_SHARED) return alloc_by_shared_cs(ctx, n, label, site, bin);
        return alloc_empty(ctx, n, label, site, apart(bin));
    }
    return hk_alloc_slow(ctx, n, label, site);
}

void *hak_alloc(hak_ctx *ctx, size_t n)
{
    if (HK_LIKELY(n <= 1024)) {
        hk_bin *bin = hk_bin_of(ctx, hk_bin_in(ctx, n));
        if (HK_LIKELY(hk_bin_filled(bin))) return hk_magazine_pop(bin, 0);
        if (HK_UNLIKELY(ctx->role == HK_SHARED)) return alloc_by_shared(ctx, n, 0, 0, bin);
        return alloc_empty(ctx, n, 0, 0, apart(bin));
    }
    return hk_alloc_slow(ctx, n, 0, 0);
}

/* Frees after hak_ctx_retire, and those of a thread for whose heap there was no memory. */
static void free_without_heap(hak_ctx *shared, void *p, size_t n)
{
    hk_heaps *heaps = shared->heaps;
    if (n == HK_NOTED) n = HAK_NONE;
    else hk_trace_freed(shared, p, 0);
    hk_profile_freed(shared, p);
    hk_lock_take(&heaps->lock);
    hk_free_direct(shared, NULL, p, n);
    bool over = atomic_load(&heaps->retired) && hk_shared_empty(shared);
    hk_lock_drop(&heaps->lock);
    if (over) hak_ctx_destroy(shared);
}

static HK_NOINLINE void free_in_new_heap(hak_ctx *shared, void *p, size_t n)
{
    if (!p) return;
    hak_ctx *heap = hk_heap_here(shared);
    if (heap) hak_free_sized(heap, p, n);
    else free_without_heap(shared, p, n);
}

/* Whether the context is watched, or a part of a shared one, which may be about to learn that it is. */
HK_INLINE bool is_apart(const hak_ctx *ctx)
{
    uint16_t both;
    _Static_assert(offsetof(hak_ctx, role) == offsetof(hak_ctx, checked) + 1, "side by side");
    memcpy(&both, (const char *)ctx + offsetof(hak_ctx, checked), sizeof both);
    return both != 0;
}

/* Frees a block that neither a magazine nor a row takes. Samples of a profile lie in units of another kind,
 * so blocks of this kind are freed as without a profile. */
static HK_NOINLINE void free_overflow(hak_ctx *ctx, void *p, size_t n, hk_bin *bin)
{
    uint32_t kind = HK_LIKELY(bin->slots != NULL) ? bin->kind : hk_kind_in_window(ctx, p);
    if (HK_UNLIKELY(kind >= HK_SMALL_CLASSES || ctx->checked & HK_CHECKED)) free_other(ctx, p, n, kind);
    else if (HK_UNLIKELY(ctx->role)) hk_heap_overflow(ctx, bin, p);
    else hk_magazine_overflow(ctx, bin, p);
}

/* Frees a block in this packed unit of the window. A wrong pointer that passes is found when the magazine gives it
 * back, as those of slabs are. A context that checks has no magazine with room. */
HK_INLINE void free_packed(hak_ctx *ctx, void *p, size_t n, size_t unit)
{
    uint64_t behind = 0;
    uintptr_t starts = hk_packed_starts(ctx, unit);
    if (HK_UNLIKELY(!hk_packed_marked(p, starts, &behind))) {
        free_packed_apart(ctx, p, n);
    } else if (HK_UNLIKELY(!behind)) {
        free_packed_wide(ctx, p, n, starts);
    } else {
        hk_bin *bin = hk_packed_bin_by(ctx, behind);
        if (HK_UNLIKELY(!hk_packed_push_quick(bin, p))) free_packed_class(ctx, p, n, bin);
    }
}

/* The context is not shared. */
HK_INLINE void free_in(hak_ctx *ctx, void *p, size_t n)
{
    uint32_t kind = hk_kind_in_window(ctx, p);
    if (HK_LIKELY(kind < HK_BINS)) {
        hk_bin *bin = (hk_bin *)(void *)((char *)ctx->bins + hk_shift_left(kind, HK_BIN_SHIFT));
        void **top = bin->top;
        if (HK_LIKELY(top < bin->hi)) {
            *top = p;
            /* The order matters to a child that is forked between the two stores: see
             * shared/thread_heap.h. */
            atomic_signal_fence(memory_order_release);
            bin->top = top + 1;
            return;
        }
        hk_stay_third(n);
        if (HK_LIKELY(bin->slots && hk_row_free(hk_row_of(bin), p))) return;
        free_overflow(ctx, p, n, bin);
        return;
    }
    if (HK_LIKELY(kind == HK_KIND_PACKED))
        free_packed(ctx, p, n, ((uintptr_t)p - ctx->base) >> HK_UNIT_SHIFT);
    else free_other(ctx, p, n, kind);
}

HK_INLINE void free_by_shared(hak_ctx *shared, void *p, size_t n)
{
    hak_ctx *heap = shared;
    if (HK_LIKELY(hk_heap_quick(&heap))) free_in(heap, p, n);
    else free_in_new_heap(shared, p, n);
}

static HK_NOINLINE void free_outside_sized(hak_ctx *ctx, void *p, size_t n)
{
    if (ctx->role == HK_SHARED) free_by_shared(ctx, p, n);
    else free_other(ctx, p, n, UINT32_MAX);
}

static HK_NOINLINE void free_outside(hak_ctx *ctx, void *p)
{
    if (ctx->role == HK_SHARED) free_by_shared(ctx, p, HAK_NONE);
    else free_other(ctx, p, HAK_NONE, UINT32_MAX);
}

void hak_free(hak_ctx *ctx, void *p)
{
    if (HK_LIKELY(hk_in_window(ctx, p))) free_in(ctx, p, HAK_NONE);
    else free_outside(ctx, p);
}

/* The look-up is one load from a flat map, and makes a wrong size harmless: see
 * docs/internals/allocation.md. */
void hak_free_sized(hak_ctx *ctx, void *p, size_t n)
{
    if (HK_LIKELY(hk_in_window(ctx, p))) free_in(ctx, p, n);
    else free_outside_sized(ctx, p, n);
}

static HK_NOINLINE void free_with_site(hak_ctx *ctx, void *p, hak_site site)
{
    if (ctx->checked & HK_GUARDED) hk_guard_freed_by(ctx, p, site);
    hk_trace_freed(ctx, p, site);
    hak_free_sized(ctx, p, ctx->checked & HK_TRACED ? HK_NOTED : HAK_NONE);
}

void hak_free_cs(hak_ctx *ctx, void *p, hak_site site)
{
    if (HK_UNLIKELY(ctx->checked & (HK_GUARDED | HK_TRACED)) && p) free_with_site(ctx, p, site);
    else hak_free(ctx, p);
}

/* ---- Slow paths ---------------------------------------------------------------------------------- */

static HK_NOINLINE void *alloc_refilled(hak_ctx *ctx, hk_bin *bin, hak_label label)
{
    if (HK_UNLIKELY(bin->top != bin->lo || !hk_slab_refill_here(ctx, bin, hk_refill_of(bin))))
        return hk_alloc_class(ctx, bin->kind, 0, label);
    return hk_magazine_pop(bin, label);
}

/* Of a class that has no current slab, in a local context. */
static HK_NOINLINE void *alloc_packed(hak_ctx *ctx, unsigned sc, hak_label label, const hk_bin *bin)
{
    void *p = NULL;
    if (HK_LIKELY(hk_packed_listed(ctx, sc))) p = hk_packed_again(ctx, sc, label);
    else if (!bin->slots || hk_packed_keeps(ctx, sc)) p = hk_packed_alloc(ctx, sc, 0, label);
    return HK_LIKELY(p) ? p : hk_alloc_class(ctx, sc, 0, label);
}

/* In a local context. Most often the magazine is filled from the current slab. */
static HK_NOINLINE void *alloc_class(hak_ctx *ctx, unsigned sc, hak_label label)
{
    hk_bin *bin = hk_bin_of(ctx, sc);
    if (HK_UNLIKELY(ctx->account.pressure)) return hk_alloc_class(ctx, sc, 0, label);
    if (HK_LIKELY(bin->slab != NULL)) return alloc_refilled(ctx, bin, label);
    if (hk_packed_at_hand(bin, label)) return hk_packed_take(ctx, bin, label);
    return alloc_packed(ctx, sc, label, bin);
}

/* The same of a block above 1 KiB. */
static HK_NOINLINE void *alloc_class_above(hak_ctx *ctx, size_t n, hak_label label)
{
    unsigned sc = hk_class_of(n);
    hk_bin *bin = hk_bin_of(ctx, sc);
    bool quick = !ctx->account.pressure && bin->slab && bin->top == bin->lo;
    if (HK_LIKELY(quick) && hk_slab_refill_here(ctx, bin, hk_refill_of(bin)))
        return hk_magazine_pop(bin, label);
    return hk_alloc_class(ctx, sc, n, label);
}

/* The bin, which is that of n, has no block at hand. A young heap cuts a block from its region. */
static HK_NOINLINE void *alloc_empty(hak_ctx *ctx, size_t n, hak_label label, hak_site site,
                                     const hk_bin *bin)
{
    unsigned sc = (unsigned)(bin - ctx->bins), packed = sc + (sc == 0); /* blocks are 16 bytes at least */
    if (hk_packed_ready(ctx, packed, HK_CUT_PLAIN)) return hk_packed_cut_quick(ctx, packed);
    if (HK_UNLIKELY(is_apart(ctx))) return hk_alloc_watched(ctx, sc, n, label, site);
    if (hk_packed_ready(ctx, sc, HK_CUT_LABELLED)) return hk_packed_cut(ctx, sc, label);
    return alloc_class(ctx, sc, label);
}

void *hk_alloc_slow(hak_ctx *ctx, size_t n, hak_label label, hak_site site)
{
    if (n > 1024 && HK_LIKELY(n <= HK_RUN_MAX)) {
        hk_bin *bin = hk_bin_of(ctx, hk_kind_above(n));
        if (HK_LIKELY(hk_bin_filled(bin))) return hk_magazine_pop(bin, label);
        if (ctx->role == HK_SHARED) return alloc_by_shared_cs(ctx, n, label, site, bin);
    }
    if (HK_LIKELY(n <= 1024)) return alloc_empty(ctx, n, label, site, hk_bin_of(ctx, hk_bin_in(ctx, n)));
    if (n > HK_SMALL_MAX) {
        bool zero;
        return hk_alloc_large(ctx, HK_PAGE, n, label, site, &zero);
    }
    if (HK_UNLIKELY(is_apart(ctx))) return hk_alloc_watched(ctx, hk_class_of(n), n, label, site);
    return alloc_class_above(ctx, n, label);
}

static HK_NOINLINE void free_other(hak_ctx *ctx, void *p, size_t n, uint32_t kind)
{
    if (HK_UNLIKELY(ctx->debug & (HAK_DEBUG_QUARANTINE | HAK_DEBUG_TRACE)) &&
        !(p = hk_watch_free(ctx, p, &n)))
        return;
    if (ctx->role == HK_HEAP) hk_free_from_heap(ctx, p, n, kind);
    else if (p && HK_UNLIKELY(ctx->checked)) hk_free_watched(ctx, p, n);
    else if (p) hk_block_free(ctx, p, n);
}

static HK_NOINLINE void free_packed_apart(hak_ctx *ctx, void *p, size_t n)
{
    if (ctx->checked) free_other(ctx, p, n, HK_KIND_PACKED);
    else if (ctx->role) hk_free_packed_here(ctx, p);
    else hk_packed_free(ctx, p);
}

static HK_NOINLINE void free_packed_class(hak_ctx *ctx, void *p, size_t n, const hk_bin *bin)
{
    if (HK_LIKELY(!is_apart(ctx))) hk_packed_free_class(ctx, p, bin);
    else free_packed_apart(ctx, p, n);
}

/* Calls come last: it needs no stack then. */
static HK_NOINLINE void free_packed_wide(hak_ctx *ctx, void *p, size_t n, uintptr_t starts)
{
    unsigned sc = 0;
    if (HK_UNLIKELY(!hk_packed_class_wide(p, starts, &sc))) {
        free_packed_apart(ctx, p, n);
        return;
    }
    hk_bin *bin = hk_packed_bin(ctx, sc);
    if (HK_UNLIKELY(!hk_packed_push_quick(bin, p))) free_packed_class(ctx, p, n, bin);
}

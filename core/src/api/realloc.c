/* Resizes blocks: in place if the new size fits, else by a new block, a copy and a free. */
#include "api/alloc.h"

#include "api/errors.h"
#include "api/limits.h"
#include "api/trace.h"
#include "api/watch.h"
#include "heap/big.h"
#include "heap/block.h"
#include "heap/block_free.h"
#include "heap/canary.h"
#include "heap/guard.h"
#include "heap/hints.h"
#include "heap/label.h"
#include "heap/packed.h"
#include "heap/packed_grow.h"
#include "heap/run.h"
#include "heap/slab.h"
#include "shared/remote.h"
#include "shared/thread_heap.h"

/* A request of a multiple of 16 bytes is 16-aligned. */
HK_INLINE bool aligned_for(const void *p, size_t n)
{
    return HK_LIKELY((uintptr_t)p % 16 == 0) || n % 16 || n < 16;
}

/* Whether a block of `size` bytes is kept for n: it fits, and a class of its own would save little. */
static bool stays(const hak_ctx *ctx, const void *p, size_t size, size_t n)
{
    if (n > size || size > HK_SMALL_MAX || !aligned_for(p, n)) return false;
    size_t room = ctx->checked & HK_CHECKED ? 0 : HK_ROOM(size);
    return size - n <= room || size - hk_classes[hk_class_of(n)].size <= room;
}

/* Most calls find a block of a slab that has room. kind: hk_kind_in_window(ctx, p). */
HK_INLINE bool stays_in_slab(const hak_ctx *ctx, uint32_t kind, const void *p, size_t n)
{
    if (kind >= HK_SMALL_CLASSES || ctx->checked & HK_CHECKED) return false;
    const hk_class *c = &hk_classes[kind];
    return n <= c->size && n >= c->least && aligned_for(p, n);
}

static HK_NOINLINE void *move_by_shared(hak_ctx *shared, void *p, size_t old, size_t n, int label,
                                        hak_site site);

/* A block of a young heap, whose label stays, and that one look tells to be large enough. */
HK_INLINE bool stays_young(const hak_ctx *ctx, uint32_t kind, const void *p, size_t n)
{
    size_t unit = ((uintptr_t)p - ctx->base) >> HK_UNIT_SHIFT;
    return n <= HK_MARKS * 8 && kind == HK_KIND_PACKED && !ctx->checked && aligned_for(p, n) &&
           hk_packed_stays(ctx, p, unit, n);
}

/* Packed blocks are of any multiple of 8 bytes, whatever class was asked for. */
static bool stays_packed(const hak_ctx *ctx, const void *p, size_t n, int label)
{
    if (ctx->checked & HK_CHECKED) return false;
    size_t size = hk_packed_size(ctx, p);
    return size && stays(ctx, p, size, n) && hk_takes_label(ctx, p, size, label);
}

/* Moves a block of a slab to a block at hand. NULL = there is no block at hand, no room for p, or p is not a
 * block. */
HK_INLINE void *move_at_hand(hak_ctx *ctx, unsigned kind, void *p, size_t n, int label)
{
    if (n - 1 >= 1024 || (ctx->checked & HK_CHECKED) | ctx->settings.hinted) return NULL;
    hk_bin *from = hk_bin_of(ctx, kind), *to = hk_bin_of(ctx, hk_bin_in(ctx, n));
    if (from->top >= from->hi || !hk_bin_filled(to)) return NULL;
    hk_slab *s;
    int i = hk_slab_index(ctx, ctx->extent, kind, p, &s);
    if (i < 0 || !hk_slab_block_out(ctx->extent, s, (unsigned)i)) return NULL;
    void *q = to->top[-1];
    size_t bytes = hk_min(n, hk_classes[kind].size);
    /* Otherwise compilers copy a size that they know to be small with "rep movs", which starts slowly. */
    __asm__("" : "+r"(bytes));
    memcpy(q, p, bytes);
    /* Labels may come between the two loads: those of older blocks are 0. */
    uint8_t *labels = __atomic_load_n(&to->labels, __ATOMIC_ACQUIRE);
    if (labels) {
        const uint8_t *old = __atomic_load_n(&from->labels, __ATOMIC_ACQUIRE);
        if (label == HK_KEEP_LABEL) label = old ? old[(uintptr_t)p >> from->shift] : 0;
        labels[(uintptr_t)q >> to->shift] = (uint8_t)label;
    }
    to->top--;
    *from->top = p;
    /* The order matters to a child that is forked between the two stores: see shared/thread_heap.h. */
    atomic_signal_fence(memory_order_release);
    from->top++;
    return q;
}

/* n and `room` percent of it. A multiple of 16 stays one, because its alignment depends on that. */
HK_INLINE size_t roomy(size_t n, unsigned room)
{
    size_t wide = hk_min(n + n * room / 100, HK_SMALL_MAX);
    return n % 16 ? wide : wide & ~(size_t)15;
}

/* What to ask for when a block of `size` bytes grows to n. A step that is small relative to the block will be
 * followed by others, so it is over-allocated, up to the next power of two at most, where buffers with a
 * limit end. */
static size_t with_room(const hak_ctx *ctx, size_t size, size_t n, unsigned room)
{
    if (HK_UNLIKELY(room != 0) && n > size && n <= HK_SMALL_MAX) return roomy(n, room);
    if (n <= 1024 || n <= size || n - size > size / 16 || n > HK_SMALL_MAX || ctx->checked & HK_CHECKED)
        return n;
    unsigned fit = hk_class_of(n), sc = fit;
    while (!hk_is_power_of_two(hk_classes[sc].size) && hk_classes[sc + 1].least <= hk_classes[fit].size)
        sc++;
    return hk_classes[sc].size;
}

/* The last way for a block to grow, when the context has nothing left for a second one. NULL = there is none. */
static HK_COLD void *grow_last(hak_ctx *ctx, void *p, size_t n)
{
    if (ctx->role != HK_LOCAL || ctx->checked) return NULL;
    hk_extent *e;
    uint32_t kind = hk_kind_at(ctx, p, &e);
    if (kind == HK_KIND_PACKED) {
        void *q = hk_packed_grow(ctx, p, n);
        return q ? q : hk_packed_move(ctx, p, n);
    }
    bool run = kind >= HK_SMALL_CLASSES && kind < HK_BINS;
    return run ? hk_run_move(ctx, e, p, n) : NULL;
}

static void *resize_big(hak_ctx *ctx, void *p, size_t n)
{
    hk_profile *k = hk_profile_of(ctx);
    hk_sample *s = k ? hk_profile_sample_leave(k, p) : NULL;
    void *q = hk_big_resize(ctx, hk_big_find(ctx, p), n);
    if (s) hk_profile_sample_arrive(k, s, p, q ? q : p);
    return q;
}

/* The block resized without a copy: p or, for big blocks, where its pages were moved. NULL = cannot. */
static HK_NOINLINE void *resize_here(hak_ctx *ctx, void *p, size_t size, size_t n)
{
    hk_extent *e;
    uint32_t kind = hk_kind_at(ctx, p, &e);
    if (kind < HK_SMALL_CLASSES || kind == HK_KIND_PACKED) return NULL;
    if (HK_UNLIKELY(hk_guard_in(ctx->space, p) != NULL)) return NULL;
    n = hk_with_canary(ctx, n);
    if (kind < HK_BINS) return n > HK_SMALL_MAX && n <= HK_RUN_MAX && hk_run_resize(ctx, e, p, n) ? p : NULL;
    if (n <= HK_RUN_MAX && hk_whole(ctx)->checked & HK_CHECKED) return NULL;
    return n <= size && size - n <= size / 8 ? p : resize_big(ctx, p, n);
}

static void *resize(hak_ctx *ctx, void *p, size_t size, size_t n)
{
    if (stays(ctx, p, size, n)) return p;
    if (HK_LIKELY(!ctx->role)) return resize_here(ctx, p, size, n);
    if (size <= HK_SMALL_MAX) return NULL;
    /* A block of another heap is copied if that heap is busy. */
    hak_ctx *owner = hk_owner(ctx, p);
    if (owner == ctx) hk_heap_lock(ctx);
    else if (!hk_heap_try(owner)) return NULL;
    void *q = hk_owner(ctx, p) == owner ? resize_here(owner, p, size, n) : NULL;
    hk_heap_unlock(owner);
    return q;
}

/* A run that its block left is seldom asked for again in this size. It goes past the magazine, so that its
 * units can be anything, or room for the block before it to grow. */
static void free_old(hak_ctx *ctx, void *p, size_t size, const void *q)
{
    bool done = false;
    if (HK_UNLIKELY(ctx->checked & HK_OBSERVED)) {
        /* Units of samples are of another kind. */
        hk_profile *k = hk_kind_in_window(ctx, p) < HK_BINS ? NULL : hk_profile_of(ctx);
        if (k) hk_profile_grown(k, p, hk_block_size(ctx, q));
    } else if (size > HK_SMALL_MAX && !ctx->checked) {
        hk_enter(ctx);
        done = hk_block_put_back(ctx, p);
        hk_leave(ctx);
    }
    if (!done) hak_free(ctx, p);
}

/* Runs that grow move to mappings, which grow without copies. */
static bool grows_apart(const hak_ctx *ctx, const void *p, size_t size, size_t n)
{
    hk_extent *e;
    return size > HK_SMALL_MAX && n > size && !(ctx->checked & HK_CHECKED) &&
           hk_kind_at(ctx, p, &e) < HK_BINS;
}

static bool one_at_hand(hak_ctx *ctx, size_t n)
{
    hk_enter(ctx);
    bool fits = hk_big_fits(ctx, n);
    hk_leave(ctx);
    return fits;
}

static void *regrow(hak_ctx *ctx, size_t n, hak_label label, hak_site site)
{
    hk_enter(ctx);
    void *q = hk_big_regrow(ctx, n, label, site);
    hk_leave(ctx);
    return q && HK_UNLIKELY(ctx->debug) ? hk_watch_new(ctx, q, n, hk_block_size(ctx, q), label, site) : q;
}

/* A block that moves to untouched pages releases its own on the way. Returns how much is left to be copied.
 */
static size_t move_end(hak_ctx *ctx, char *p, char *q, size_t size)
{
    enum { PIECE = 128 << 10 };
    while (size >= 2 * PIECE) {
        size_t left = size - PIECE;
        memcpy(q + left, p + left, PIECE);
        if (resize(ctx, p, size, left) != p) return size;
        hk_space_shrink(ctx->space, PIECE);
        size = left;
    }
    return size;
}

/* The room that a policy's hint gives blocks of this label and site, in percent. */
static HK_NOINLINE unsigned hinted_room(const hak_ctx *ctx, const void *p, int label, hak_site site)
{
    hak_ctx *whole = hk_whole(ctx);
    hak_label given = hk_label_after(ctx, p, label);
    hk_whole_lock(whole);
    unsigned room =
        hk_hints_any(whole->settings.hints) ? hk_hints_room(whole->settings.hints, given, site) : 0;
    hk_whole_unlock(whole);
    return room;
}

/* A block that has such room keeps it. */
static bool stays_hinted(const void *p, size_t size, size_t n, unsigned room)
{
    return n && n <= size && size <= HK_SMALL_MAX && aligned_for(p, n) &&
           hk_classes[hk_class_of(roomy(n, room))].size >= size;
}

/* The block, of `size` bytes, was resized without a copy: it is q now. */
static void *kept(hak_ctx *ctx, void *p, void *q, size_t size, size_t n, int label, hak_site site)
{
    if (HK_UNLIKELY(ctx->debug)) q = hk_watch_moved(ctx, p, q, size, n, label, site);
    return hk_stay(ctx, q, label);
}

/* old: the size told, or HAK_NONE. */
static HK_NOINLINE void *reallocate(hak_ctx *ctx, void *p, size_t old, size_t n, int label, hak_site site)
{
    if (!p) return hak_alloc_cs(ctx, n, label == HK_KEEP_LABEL ? 0 : (hak_label)label, site);
    size_t size = hk_watch_resize(ctx, p, old, n, label, site);
    if (HK_UNLIKELY(size == 0)) return NULL;
    if (HK_UNLIKELY(n > HK_SIZE_MOST)) {
        hk_error(ctx, HAK_E_OVERFLOW, p, "realloc: the size is absurd");
        return hk_fail(ctx);
    }
    /* With a canary more than the program may use. */
    size_t held = HK_UNLIKELY(ctx->debug & HAK_DEBUG_CANARY) ? hk_block_size(ctx, p) : size;
    if (HK_UNLIKELY(hk_pressed(ctx))) hk_pressure(ctx);
    unsigned room = 0;
    if (HK_UNLIKELY(ctx->settings.hinted) && !(ctx->checked & HK_CHECKED))
        room = hinted_room(ctx, p, label, site);
    bool takes = hk_takes_label(ctx, p, size, label);
    if (room && takes && stays_hinted(p, size, n, room))
        return hk_stay(ctx, hk_watch_again(ctx, p, n), label);
    bool apart = grows_apart(ctx, p, size, n);
    bool moves = !takes || (apart && one_at_hand(ctx, n)) || (ctx->retired && n > size);
    void *q = moves ? NULL : resize(ctx, p, size, n);
    if (q) return kept(ctx, p, q, held, n, label, site);
    hak_label given = hk_label_after(ctx, p, label);
    size_t want = with_room(ctx, size, n, room), failures = hk_get(&ctx->account.failures),
           high = hk_get(&ctx->space->high);
    if (apart) q = regrow(ctx, n, given, site);
    if (!q) q = hak_alloc_cs(ctx, want, given, site);
    if (!q && want > n) q = hak_alloc_cs(ctx, n, given, site);
    /* Where memory is short the new block of a shrink may be as large as the old one. */
    if (q && takes && n < size && aligned_for(p, n) && HK_UNLIKELY(hak_usable_size(ctx, q) >= size)) {
        hak_free(ctx, q);
        q = NULL;
    }
    /* The context gave up what it had at hand for a block of n bytes: that may do for the growth. */
    bool last = !q && !moves && n > size;
    void *grown = last ? resize(ctx, p, size, n) : NULL;
    if (HK_UNLIKELY(last && !grown)) grown = grow_last(ctx, p, n);
    /* Count at most one failure per failed call. */
    if (HK_UNLIKELY(hk_get(&ctx->account.failures) != failures))
        hk_set(&ctx->account.failures, failures + (!q && !grown && n > size));
    if (grown) return kept(ctx, p, grown, held, n, label, site);
    if (!q) {
        if (n > size) return NULL;
        return hk_stay(ctx, hk_watch_again(ctx, p, n), label);
    }
    bool peak = size > HK_SMALL_MAX && hk_get(&ctx->space->high) > high;
    if (peak && n > size && size <= HK_RUN_MAX && !(ctx->debug & HAK_DEBUG_CANARY))
        size = move_end(ctx, p, q, size);
    memcpy(q, p, hk_min(size, n));
    free_old(ctx, p, size, q);
    if (peak) hk_space_shrink(ctx->space, size);
    return q;
}

/* Most small blocks that move find another one at hand. */
static HK_NOINLINE void *move(hak_ctx *ctx, void *p, size_t old, size_t n, int label, hak_site site)
{
    /* With max_align sizes round up to 16, and the rounded size may fit the class. A drawn block has what was
     * asked for. */
    if (HK_UNLIKELY(ctx->max_align) && n <= 1024 && !(ctx->checked & (HK_CHECKED | HK_GUARDED))) {
        n = hk_align_up(n ? n : 1, 16);
        if (stays_in_slab(ctx, hk_kind_in_window(ctx, p), p, n)) return hk_stay(ctx, p, label);
    }
    uint32_t kind = hk_kind_in_window(ctx, p);
    if (HK_LIKELY(kind < HK_SMALL_CLASSES)) {
        void *q = move_at_hand(ctx, kind, p, n, label);
        if (HK_LIKELY(q)) return q;
    } else if (kind == HK_KIND_PACKED) {
        if (stays_packed(ctx, p, n, label)) return hk_stay(ctx, p, label);
    } else if (ctx->role == HK_SHARED) {
        return move_by_shared(ctx, p, old, n, label, site);
    }
    return reallocate(ctx, p, old, n, label, site);
}

/* Goes on with the calling thread's heap. If it cannot have one, a block that fits stays. */
static HK_NOINLINE void *move_by_shared(hak_ctx *shared, void *p, size_t old, size_t n, int label,
                                        hak_site site)
{
    hak_ctx *heap = hk_heap_here(shared);
    if (HK_LIKELY(heap))
        return stays_in_slab(heap, hk_kind_in_window(heap, p), p, n) ? hk_stay(heap, p, label)
                                                                     : move(heap, p, old, n, label, site);
    size_t size = hak_usable_size(shared, p);
    if (p) hk_trace_note(shared, HAK_TRACE_REALLOC, p, n, 0, site);
    if (p && size == 0) hk_misuse(shared, p);
    else if (n > HK_SIZE_MOST) hk_error(shared, HAK_E_OVERFLOW, p, "realloc: the size is absurd");
    if (n > size || size == 0) return hk_fail(shared);
    hk_watch_again(shared, p, n);
    return hk_stay(shared, p, label);
}

HK_INLINE void *realloc_labelled(hak_ctx *ctx, void *p, size_t old, size_t n, hak_label label, hak_site site)
{
    if (HK_UNLIKELY(!stays_in_slab(ctx, hk_kind_in_window(ctx, p), p, n)))
        return move(ctx, p, old, n, label, site);
    if (ctx->labels.on) hk_relabel(ctx, p, label);
    return p;
}

void *hak_realloc_cs(hak_ctx *ctx, void *p, size_t n, hak_label label, hak_site site)
{
    return realloc_labelled(ctx, p, HAK_NONE, n, label, site);
}

void *hak_realloc(hak_ctx *ctx, void *p, size_t n)
{
    uint32_t kind = hk_kind_in_window(ctx, p);
    if (HK_LIKELY(stays_in_slab(ctx, kind, p, n) || stays_young(ctx, kind, p, n))) return p;
    return move(ctx, p, HAK_NONE, n, HK_KEEP_LABEL, 0);
}

void *hak_realloc_sized_cs(hak_ctx *ctx, void *p, size_t old, size_t n, hak_label label, hak_site site)
{
    return realloc_labelled(ctx, p, old, n, label, site);
}

/* No stack is needed for a block of a young heap. */
static HK_NOINLINE void *move_sized(hak_ctx *ctx, void *p, size_t old, size_t n)
{
    if (stays_young(ctx, hk_kind_in_window(ctx, p), p, n)) return p;
    return move(ctx, p, old, n, HK_KEEP_LABEL, 0);
}

void *hak_realloc_sized(hak_ctx *ctx, void *p, size_t old, size_t n)
{
    if (HK_LIKELY(stays_in_slab(ctx, hk_kind_in_window(ctx, p), p, n))) return p;
    return move_sized(ctx, p, old, n);
}

/* Gives memory back: magazines to slabs, empty slabs to the space, holes and retained pages to the OS. */
#include "api/trim.h"

#include "api/learner.h"
#include "api/quarantine.h"
#include "heap/batch.h"
#include "heap/big_cache.h"
#include "heap/holes.h"
#include "heap/magazine.h"
#include "heap/packed.h"
#include "heap/reclaim.h"
#include "heap/row.h"
#include "heap/slab.h"
#include "profile/profile.h"
#include "shared/remote.h"
#include "shared/thread_heap.h"
#include "shared/transfer.h"

/* Gives up caches, if they are not to stay, and packed memory. magazines: whether these may be touched,
 * because they belong to the calling thread or to nobody. Returns bytes. */
static size_t flush_as(hak_ctx *ctx, bool caches, bool magazines, void (*trim_packed)(hak_ctx *ctx))
{
    size_t before = hk_get(&ctx->account.committed);
    bool heap = ctx->role == HK_HEAP;
    if (caches) {
        if (magazines) heap ? hk_heap_flush(ctx) : hk_magazines_flush(ctx);
        if (heap) hk_transfer_flush(ctx);
        hk_reclaim_empty(ctx);
    }
    trim_packed(ctx);
    return before - hk_get(&ctx->account.committed);
}

static size_t flush(hak_ctx *ctx, bool magazines)
{
    return flush_as(ctx, true, magazines, hk_packed_trim);
}

/* Does this in each heap whose lock is free. */
static bool give_up(hak_ctx *ctx, bool caches, void (*trim_packed)(hak_ctx *ctx))
{
    size_t done = flush_as(ctx, caches, true, trim_packed);
    hak_ctx *other = ctx->role == HK_HEAP ? hk_heaps_first(ctx->whole) : NULL;
    for (; other; other = other->heap->next) {
        if (other == ctx || !hk_heap_try(other)) continue;
        hk_remote_drain(other, false);
        done += flush_as(other, caches, hk_heap_unowned(other), trim_packed);
        hk_heap_unlock(other);
    }
    return done > 0;
}

bool hk_give_up(hak_ctx *ctx)
{
    return give_up(ctx, true, hk_packed_trim_much);
}

bool hk_give_up_packed(hak_ctx *ctx)
{
    return give_up(ctx, false, hk_packed_trim_pages);
}

static size_t flush_shared(hak_ctx *shared)
{
    size_t done = 0;
    const hak_ctx *mine = hk_heap_find(shared);
    /* Two rounds: blocks that the first one sends home may empty slabs there. */
    for (unsigned round = 0; round < 2; round++) {
        for (hak_ctx *heap = hk_heaps_first(shared); heap; heap = heap->heap->next) {
            hk_heap_lock(heap);
            bool own = heap == mine || hk_heap_unowned(heap);
            if (own) hk_remote_send(heap);
            done += flush(heap, own);
            hk_heap_unlock(heap);
        }
    }
    return done;
}

size_t hak_ctx_flush(hak_ctx *ctx)
{
    hak_ctx *whole = hk_whole(ctx);
    hk_quarantine_end(whole);
    return whole->heaps ? flush_shared(whole) : flush(ctx, true);
}

static void release_holes(hak_ctx *ctx, hk_slab *s, void *unused)
{
    (void)unused;
    hk_extent *e = hk_extent_of_slab(ctx->space, s);
    /* Poisoned blocks must keep their pattern. */
    if (s->kind >= HK_SMALL_CLASSES || !e->owned || ctx->debug & HAK_DEBUG_POISON) return;
    unsigned holes = hk_slab_empty_parts(ctx, e, s) & ~(unsigned)s->released;
    size_t grain = hk_slab_grain(s);
    char *start = hk_slab_start(e, s);
    s->released = (uint16_t)(s->released | holes);
    while (holes) {
        unsigned from = (unsigned)__builtin_ctz(holes);
        unsigned n = (unsigned)__builtin_ctz(~(holes >> from));
        hk_space_decommit(ctx->space, start + from * grain, n * grain);
        holes &= ~(((1u << n) - 1u) << from);
        hk_add(&ctx->account.released, n * grain);
    }
}

size_t hak_ctx_trim(hak_ctx *ctx)
{
    hak_ctx *whole = hk_whole(ctx);
    size_t before = hk_get(&whole->space->purged_bytes);
    hak_ctx_flush(whole);
    hk_space_purge(whole->space);
    hk_walk(whole, release_holes, NULL);
    return hk_get(&ctx->space->purged_bytes) - before;
}

/* Empties the magazines of a thread that ended, which would stay resident until the next thread comes. */
static bool flush_left(hak_ctx *ctx)
{
    if (ctx->role != HK_HEAP || !hk_heap_unowned(ctx)) return false;
    if (!ctx->heap->flushed) flush(ctx, true);
    return ctx->heap->flushed = true;
}

/* Larger blocks and packed ones wait in magazines for one period at most; in a heap that nobody uses all blocks
 * do. Packed units of classes that have slabs now empty by and by, and no allocation looks at them. */
static void flush_waiting(hak_ctx *ctx, uint64_t now_ns)
{
    uint64_t since = ctx->magazines.flush_ns;
    if (since && now_ns >= since && now_ns - since < hk_get(&ctx->space->purge_ns)) return;
    hk_rows_settle(ctx);
    if (since && !flush_left(ctx)) {
        if (ctx->role == HK_HEAP) hk_heap_sift(ctx);
        hk_magazines_flush_from(ctx, HK_KIB_CLASSES);
        hk_magazines_flush_packed(ctx);
        if (ctx->role == HK_LOCAL) hk_packed_trim_freed(ctx);
    }
    ctx->magazines.flush_ns = now_ns;
}

/* magazines: as for flush(). */
static void tick(hak_ctx *ctx, uint64_t now_ns, bool magazines)
{
    hk_big_tick(ctx, now_ns);
    if (magazines) flush_waiting(ctx, now_ns);
    hk_space_take_back(ctx->space, &ctx->owned.aside);
}

static void tick_shared(hak_ctx *shared, uint64_t now_ns)
{
    const hak_ctx *mine = hk_heap_find(shared);
    for (hak_ctx *heap = hk_heaps_first(shared); heap; heap = heap->heap->next) {
        if (!hk_heap_try(heap)) continue;
        hk_remote_drain(heap, false);
        hk_transfer_tick(heap, now_ns);
        if (heap == mine) hk_borrow_anew(heap);
        tick(heap, now_ns, heap == mine || hk_heap_unowned(heap));
        hk_heap_unlock(heap);
    }
}

void hak_ctx_tick(hak_ctx *ctx, uint64_t now_ns)
{
    if (now_ns == 0) now_ns = ctx->space->os.clock(ctx->space->os.user);
    hak_ctx *whole = hk_whole(ctx);
    if (whole->heaps) tick_shared(whole, now_ns);
    else tick(ctx, now_ns, true);
    hk_space_tick(ctx->space, now_ns);
    hk_profile *k = hk_profile_of(whole);
    if (HK_UNLIKELY(k != NULL)) hk_profile_turn(k);
    if (HK_UNLIKELY(whole->settings.learner != NULL)) hk_learner_tick(whole, now_ns);
}

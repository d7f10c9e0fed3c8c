/* Makes heaps for threads, finds one for a thread that has none, and ends them with their shared context. */
#include "heap/big.h"
#include "heap/guard.h"
#include "heap/label_on.h"
#include "heap/metadata.h"
#include "heap/packed.h"
#include "heap/placement.h"
#include "shared/remote.h"
#include "shared/transfer.h"

static hak_ctx *heap_new(hak_ctx *shared)
{
    hak_options o = shared->heaps->options;
    hak_tuning t;
    uint32_t run = hk_heaps_settings_get(shared->heaps, &t);
    o.quota = &shared->heaps->account;
    o.tuning = &t;
    if (shared->checked & HK_PLACED) o.seed = hk_placement_split(shared);
    hak_ctx *heap = hk_ctx_new(shared->space, &o, sizeof(hk_heap));
    if (!heap) return NULL;
    hk_account_begin(heap);
    hk_heap *h = hk_behind(heap);
    heap->whole = shared;
    heap->heap = h;
    h->settings_run = run;
    h->member = (hk_member){.steal = hk_heap_steal, .recall = hk_transfer_recall};
    __atomic_store_n(&heap->role, HK_HEAP, __ATOMIC_RELEASE);
    if (!(heap->checked & HK_CHECKED)) hk_bins_widen(heap);
    hk_packed_quicken(heap); /* packed units are under the lock from now on */
    return heap;
}

/* Returns a heap without thread. It prefers the heap whose last thread had the same register, and so this
 * thread's stack and often its work; else it takes the newest. The caller holds the lock of the shared
 * context. */
static hak_ctx *heap_left(hak_ctx *shared, uintptr_t thread)
{
    enum { LOOKS = 64 };
    hak_ctx *found = NULL;
    unsigned looks = 0;
    for (hak_ctx *heap = hk_heaps_first(shared); heap && (!found || looks < LOOKS); heap = heap->heap->next) {
        looks++;
        if (!hk_heap_unowned(heap)) continue;
        if (heap->heap->left_by == thread) return heap;
        if (!found) found = heap;
    }
    return found;
}

hak_ctx *hk_heap_claim(hak_ctx *shared, uintptr_t thread)
{
    hk_heaps *heaps = shared->heaps;
    hak_ctx *heap = hk_heap_find(shared);
    if (heap) return heap;
    if (atomic_load(&heaps->retired)) return NULL;
    hk_lock_take(&heaps->lock);
    heap = heap_left(shared, thread);
    if (heap && !hk_heap_own(shared, heap, thread)) heap = NULL;
    hk_lock_drop(&heaps->lock);
    if (heap) return heap;
    heap = heap_new(shared);
    if (!heap) return NULL;
    hk_lock_take(&heaps->lock);
    /* Check again under the lock: labels may have been switched on since the heap was made. */
    if (shared->labels.on && !heap->labels.on && !hk_labels_charge(heap)) {
        hk_lock_drop(&heaps->lock);
        hk_big_destroy(heap);
        hk_account_end(heap);
        hk_ctx_end(heap);
        return NULL;
    }
    heap->labels.on = shared->labels.on;
    hk_heap_observe(heap);
    hk_heap_settings_follow(heap);
    bool owned = hk_heap_own(shared, heap, thread);
    /* If the thread table is full, the heap stays in the list without an owner. A later thread will adopt
     * it. */
    heap->heap->next = hk_heaps_first(shared);
    atomic_store_explicit(&heaps->newest, heap, memory_order_release);
    hk_lock_drop(&heaps->lock);
    if (!owned) return NULL;
    hk_heap_reclaim(heap);
    return heap;
}

HAK_API hak_ctx *hak_ctx_thread(hak_ctx *ctx)
{
    return ctx->role == HK_SHARED ? hk_heap_here(ctx) : ctx;
}

HAK_API void hak_ctx_thread_done(hak_ctx *ctx)
{
    hak_ctx *shared = hk_whole(ctx);
    hak_ctx *heap = shared->heaps ? hk_heap_find(shared) : NULL;
    if (!heap) return;
    hk_lock_take(&shared->heaps->lock);
    hk_heap_lock(heap);
    hk_remote_send(heap);
    hk_heap_disown(shared, heap);
    hk_heap_unlock(heap);
    hk_lock_drop(&shared->heaps->lock);
}

/* ---- Life ----------------------------------------------------------------------------------------- */

void hk_shared_make(hak_ctx *shared, const hak_options *options)
{
    hk_heaps *heaps = hk_heaps_behind(shared);
    atomic_store(&heaps->factor, (uintptr_t)HK_FIRST_FACTOR);
    hk_slots_clear(heaps->first, HK_FIRST_SLOTS, shared);
    heaps->options = *options;
    heaps->options.shared = false;
    heaps->options.tuning = &heaps->settings;
    heaps->packs = hk_packed_units(options, options->tuning) > 0;
    hk_heaps_settings_set(heaps, options->tuning);
    heaps->account.parent = options->quota;
    atomic_store(&heaps->account.used, hk_get(&shared->account.committed));
    atomic_store(&heaps->account.taken, hk_get(&shared->account.committed));
    shared->account.quota = &heaps->account;
    shared->heaps = heaps;
    shared->role = HK_SHARED;
    if (!(shared->checked & HK_CHECKED)) hk_bins_widen(shared);
    hk_packed_quicken(shared);
    shared->units = 0; /* nothing goes through its own magazines */
}

void hk_shared_destroy(hak_ctx *shared)
{
    for (hak_ctx *heap = hk_heaps_first(shared), *next; heap; heap = next) {
        next = heap->heap->next;
        hk_big_destroy(heap);
        if (heap->checked & HK_GUARDED) hk_guard_end(heap);
        hk_account_end(heap);
        if (!shared->own_space) hk_ctx_end(heap);
    }
}

void hk_shared_retire(hak_ctx *shared)
{
    hk_heaps *heaps = shared->heaps;
    hk_lock_take(&heaps->lock);
    atomic_store(&heaps->retired, true);
    for (hak_ctx *heap = hk_heaps_first(shared); heap; heap = heap->heap->next) {
        hk_lock_take(&heap->heap->lock);
        hk_heap_disown(shared, heap);
        hk_lock_drop(&heap->heap->lock);
    }
    hk_lock_drop(&heaps->lock);
}

void hk_shared_gather(hak_ctx *shared)
{
    for (hak_ctx *heap = hk_heaps_first(shared); heap; heap = heap->heap->next) {
        hk_heap_lock(heap);
        hk_heap_unlock(heap);
    }
}

void hk_shared_settle(hak_ctx *shared)
{
    for (hak_ctx *heap = hk_heaps_first(shared); heap; heap = heap->heap->next) {
        hk_heap_lock(heap);
        hk_remote_send(heap);
        hk_heap_flush(heap);
        hk_heap_unlock(heap);
    }
    /* Blocks that heaps sent to each other, and from there to the heaps that have the slabs by now. */
    hk_shared_gather(shared);
    for (hak_ctx *heap = hk_heaps_first(shared); heap; heap = heap->heap->next) {
        hk_heap_lock(heap);
        hk_transfer_flush(heap);
        hk_heap_unlock(heap);
    }
}

void hk_shared_peak_reset(hak_ctx *shared)
{
    const hak_ctx *mine = hk_heap_find(shared);
    for (hak_ctx *heap = hk_heaps_first(shared); heap; heap = heap->heap->next) {
        hk_heap_lock(heap);
        if (heap == mine || hk_heap_unowned(heap)) {
            hk_remote_send(heap);
            hk_heap_flush(heap);
        }
        hk_transfer_flush(heap);
        hk_heap_unlock(heap);
    }
    hk_shared_gather(shared);
    size_t live = atomic_load(&shared->heaps->live);
    atomic_store(&shared->heaps->peak, (ptrdiff_t)live < 0 ? 0 : live);
}

bool hk_shared_empty(const hak_ctx *shared)
{
    size_t blocks = 0;
    for (hak_ctx *heap = hk_heaps_first(shared); heap; heap = heap->heap->next)
        blocks += hk_get(&heap->live_blocks);
    return blocks == 0;
}

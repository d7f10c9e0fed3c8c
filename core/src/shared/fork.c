/* Holds all locks of a context over fork() while other threads are at work, so that the child finds
 * everything under a lock in order. Data without a lock is valid after any of its stores, so a fork may come
 * between any two: see thread_heap.h. */
#include "heap/asked.h"
#include "profile/profile.h"
#include "shared/thread_heap.h"

/* A fork holds the lock of a space, or of a learner, once for all contexts of it. The space's lock comes
 * last, so this drops it before the locks of another context are taken. Returns for how many contexts it was
 * held. */
static unsigned fork_pause(hk_lock *lock, hk_fork_hold *held, uintptr_t thread)
{
    if (atomic_load(&held->by) != thread) return 0;
    unsigned times = held->times;
    atomic_store(&held->by, 0);
    hk_lock_drop(lock);
    return times;
}

/* Holds the lock for one more context; times: for how many it was held before it was dropped. */
static void fork_hold(hk_lock *lock, hk_fork_hold *held, uintptr_t thread, unsigned times)
{
    if (atomic_load(&held->by) != thread) {
        hk_lock_take(lock);
        atomic_store(&held->by, thread);
        held->times = times;
    }
    held->times++;
}

static void fork_done(hk_lock *lock, hk_fork_hold *held)
{
    HK_ASSERT(held->times > 0 && hk_lock_held(lock));
    if (--held->times > 0) return;
    atomic_store(&held->by, 0);
    hk_lock_drop(lock);
}

/* The learner's lock comes first, because its ticks take locks of contexts and spaces. */
static hk_learner_lock *lock_of_learner(hak_ctx *shared)
{
    return (hk_learner_lock *)shared->settings.learner;
}

HAK_API void hak_ctx_fork_prepare(hak_ctx *ctx)
{
    hak_ctx *shared = hk_whole(ctx);
    uintptr_t thread = hk_thread_register();
    hak_space *space = shared->space;
    hk_learner_lock *learner = lock_of_learner(shared);
    unsigned held = fork_pause(&space->lock, &space->fork, thread);
    if (learner) fork_hold(&learner->lock, &learner->fork, thread, 0);
    if (shared->heaps) {
        hk_lock_take(&shared->heaps->walk);
        hk_lock_take(&shared->heaps->lock);
        for (hak_ctx *heap = hk_heaps_first(shared); heap; heap = heap->heap->next)
            hk_lock_take(&heap->heap->lock);
        if (hk_profile_of(shared)) hk_profile_lock(hk_profile_of(shared));
        hk_lock_take(&shared->heaps->settings_lock);
    }
    fork_hold(&space->lock, &space->fork, thread, held);
}

HAK_API void hak_ctx_fork_parent(hak_ctx *ctx)
{
    hak_ctx *shared = hk_whole(ctx);
    hk_learner_lock *learner = lock_of_learner(shared);
    fork_done(&shared->space->lock, &shared->space->fork);
    if (shared->heaps) {
        hk_lock_drop(&shared->heaps->settings_lock);
        if (hk_profile_of(shared)) hk_profile_unlock(hk_profile_of(shared));
        for (hak_ctx *heap = hk_heaps_first(shared); heap; heap = heap->heap->next)
            hk_lock_drop(&heap->heap->lock);
        hk_lock_drop(&shared->heaps->lock);
        hk_lock_drop(&shared->heaps->walk);
    }
    if (learner) fork_done(&learner->lock, &learner->fork);
}

/* The other threads do not exist in the child, so their heaps go to the threads that come next. */
HAK_API void hak_ctx_fork_child(hak_ctx *ctx)
{
    hak_ctx *shared = hk_whole(ctx);
    uintptr_t thread = hk_thread_register();
    if (shared->watch && shared->watch->quarantine)
        shared->watch->quarantine->leaving = 0; /* who had some in hand is not here */
    hk_quota_forked(shared->heaps ? &shared->heaps->account : shared->account.quota);
    if (shared->heaps) {
        for (hak_ctx *heap = hk_heaps_first(shared); heap; heap = heap->heap->next) {
            if (hk_thread_of(heap) == thread) hk_heap_renew(heap);
            else hk_heap_disown(shared, heap);
        }
    }
    hak_ctx_fork_parent(shared);
}

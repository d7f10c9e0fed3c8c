/* fork() while other threads are at work: all locks of a context are held over it, so that the child finds
 * everything that is under a lock in order. What is without a lock bears a fork between any two of its
 * stores: see thread_heap.h. */
#include "heap/asked.h"
#include "profile/profile.h"
#include "shared/thread_heap.h"

/* The locks of a space and of a learner are held over a fork for any number of their contexts. That of the
 * space comes last: before the locks of another context are taken it is dropped. Returns for how many it was
 * held. */
static unsigned fork_pause(hk_lock *lock, hk_fork_hold *held, uintptr_t thread)
{
    if (atomic_load(&held->by) != thread) return 0;
    unsigned times = held->times;
    atomic_store(&held->by, 0);
    hk_lock_drop(lock);
    return times;
}

/* For one context more; times: for how many it was held before it was paused. */
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

/* Its ticks take locks of contexts and spaces: it comes first. */
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

/* The other threads do not exist in the child: their heaps go to whoever comes next. */
HAK_API void hak_ctx_fork_child(hak_ctx *ctx)
{
    hak_ctx *shared = hk_whole(ctx);
    uintptr_t thread = hk_thread_register();
    if (shared->quarantine) shared->quarantine->leaving = 0; /* who had some in hand is not here */
    if (shared->heaps) {
        for (hak_ctx *heap = hk_heaps_first(shared); heap; heap = heap->heap->next) {
            if (hk_thread_of(heap) == thread) hk_heap_renew(heap);
            else hk_heap_disown(shared, heap);
        }
    }
    hak_ctx_fork_parent(shared);
}

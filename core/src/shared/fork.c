/* fork() while other threads are at work: all locks of a context are held over it, so that the child finds
 * everything that is under a lock in order. What is without a lock bears a fork between any two of its
 * stores: see thread_heap.h. */
#include "heap/asked.h"
#include "profile/profile.h"
#include "shared/thread_heap.h"

/* The lock of a space is held over a fork for any number of contexts. It comes last: before the locks of
 * another context are taken it is dropped. Returns for how many contexts it was held. */
static unsigned space_pause(hak_space *s, uintptr_t thread)
{
    if (atomic_load(&s->forking) != thread) return 0;
    unsigned held = s->forks;
    atomic_store(&s->forking, 0);
    hk_lock_drop(&s->lock);
    return held;
}

static void space_hold(hak_space *s, uintptr_t thread, unsigned held)
{
    hk_lock_take(&s->lock);
    atomic_store(&s->forking, thread);
    s->forks = held + 1;
}

static void space_done(hak_space *s)
{
    if (--s->forks > 0) return;
    atomic_store(&s->forking, 0);
    hk_lock_drop(&s->lock);
}

/* Its ticks take locks of contexts and spaces: it comes first. One learner may have several contexts. */
static void learner_hold(hak_ctx *shared, uintptr_t thread)
{
    hk_learner_lock *l = (hk_learner_lock *)shared->advice.learner;
    if (!l) return;
    if (atomic_load(&l->forking) != thread) hk_lock_take(&l->lock);
    atomic_store(&l->forking, thread);
    l->forks++;
}

static void learner_done(hak_ctx *shared)
{
    hk_learner_lock *l = (hk_learner_lock *)shared->advice.learner;
    if (!l || --l->forks > 0) return;
    atomic_store(&l->forking, 0);
    hk_lock_drop(&l->lock);
}

HAK_API void hak_ctx_fork_prepare(hak_ctx *ctx)
{
    hak_ctx *shared = hk_whole(ctx);
    uintptr_t thread = hk_thread_register();
    unsigned held = space_pause(shared->space, thread);
    learner_hold(shared, thread);
    if (shared->heaps) {
        hk_lock_take(&shared->heaps->walk);
        hk_lock_take(&shared->heaps->lock);
        for (hak_ctx *heap = hk_heaps_first(shared); heap; heap = heap->heap->next)
            hk_lock_take(&heap->heap->lock);
        if (hk_profile_of(shared)) hk_profile_lock(hk_profile_of(shared));
        hk_lock_take(&shared->heaps->numbers);
    }
    space_hold(shared->space, thread, held);
}

HAK_API void hak_ctx_fork_parent(hak_ctx *ctx)
{
    hak_ctx *shared = hk_whole(ctx);
    space_done(shared->space);
    if (shared->heaps) {
        hk_lock_drop(&shared->heaps->numbers);
        if (hk_profile_of(shared)) hk_profile_unlock(hk_profile_of(shared));
        for (hak_ctx *heap = hk_heaps_first(shared); heap; heap = heap->heap->next)
            hk_lock_drop(&heap->heap->lock);
        hk_lock_drop(&shared->heaps->lock);
        hk_lock_drop(&shared->heaps->walk);
    }
    learner_done(shared);
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

/* shared/: contexts that all threads use. This folder gives each thread a heap of heap/, and decides which
 * locks are held when; heap/ reaches other heaps only by hk_member.
 *
 * The context that all threads use holds no blocks itself: all its classes are closed, so that the fast paths
 * fall through to the slow paths, which find the calling thread's *heap*. A heap is a context of its own,
 * with the same code as a local one, and these rules:
 *
 *   magazines, remote caches   its thread only, without a lock; also the marks of its live packed blocks, which stay
 *   everything else        under the heap's lock, which its thread takes on slow paths; other threads take it
 *                          to trim, to read sums, and to drain the queue of a thread that does not
 *   queue                  any thread pushes batches of blocks that it freed, lock-free; see remote.h
 *
 * A child after fork may find another thread's data between any two of the stores that it makes without a
 * lock. So each order of stores leaves valid data: a push stores the block before it moves the magazine's
 * end.
 *
 * The thread register tells threads apart, because two live threads never share one; the next thread with the
 * register of a dead one finds the dead thread's heap. Locks are taken in this order: walk, shared context,
 * heap, space; numbers. */
#ifndef HK_THREAD_HEAP_H
#define HK_THREAD_HEAP_H

#include "base/mpsc.h"
#include "heap/block.h"
#include "heap/context.h"

enum {
    HK_REMOTE_MIXED = 8,
    HK_REMOTE_CLASSES = 128,
    HK_PROBES = 8,
    HK_FIRST_BITS = 6,
    HK_FIRST = 1 << HK_FIRST_BITS,
    HK_FIRST_SLOTS = HK_FIRST + HK_PROBES - 1, /* the last one has followers, too */
    HK_HEAP_PUBLISHED = 64 << 10
};
/* The factor of hashes of threads that heaps begin with: 2^64 over the golden ratio, which is odd. */
#define HK_FIRST_FACTOR UINT64_C(0x9E3779B97F4A7C15)

typedef struct hk_batch hk_batch;

struct hk_heap {
    hk_member member; /* first */
    hk_lock lock;
    hak_ctx *next;                    /* in the list of heaps; never changes once there */
    uint64_t thread_id;               /* of the thread that took it */
    uintptr_t left_by;                /* register of the last thread that had it */
    size_t published;                 /* part of live_bytes that is in the sum of heaps */
    hk_counter out_bytes, out_blocks; /* freed here, of other heaps, and sent off */
    hk_counter in_bytes, in_blocks;   /* freed elsewhere, of this heap, and come home */
    size_t away;                      /* bytes that others brought home since its thread was here */
    uint64_t away_ns;      /* when another heap first asked whether its thread comes back; 0 = none did */
    uint8_t patience;      /* how often slabs were taken from it and its thread came back */
    bool lost_slabs;       /* slabs of it moved to another heap */
    bool stolen_from;      /* its magazines may hold blocks of such slabs */
    bool flushed;          /* by a tick, since its thread ended */
    uint32_t settings_run; /* which change of the shared context's settings it took over last */
    hak_ctx *sent_to;      /* the last one that blocks went to */
    struct hk_remote_mixed {
        hak_ctx *to;
        hk_batch *batch;
    } mixed[HK_REMOTE_MIXED];
    struct hk_remote_class
        *remote; /* HK_REMOTE_CLASSES, by owner and class; NULL until one has many to send */
    uint8_t open_classes, mixed_sent;
    hk_batch *spare;
    _Atomic(struct hk_transfer *) transfer; /* see transfer.h; NULL until batches of one class come */
    uint8_t borrowed[HK_SMALL_CLASSES];     /* blocks of wider classes since the class last had free ones */
    hak_ctx *asked; /* the heap that was last asked for its transfer cache or a slab, when this one grew */
    char apart[64]; /* fields that other threads write are on other cache lines than those above */
    hk_mpsc queue;
    hk_mpsc empties; /* batches of this heap that come back empty */
    hk_mpsc strays;  /* blocks that do not come by batches, linked through themselves: out of magazines of
                        heaps that had them before, or freed while the queue was deep */
};

_Static_assert(offsetof(hk_heap, member) == 0, "ctx->member is ctx->heap");

/* The heap of a thread, whose register is in the heap itself; or the shared context, which has none: free. */
typedef _Atomic(hak_ctx *) hk_slot;

/* Open addressing, HK_PROBES slots from the hash on; outgrown tables stay readable. A thread whose heap is not in
 * the first of its slots takes a longer way at each call. So when two threads have the same first slot, `factor`
 * becomes one that gives each thread with a heap in `first` its own slot, and the heaps move: see move_apart(). */
typedef struct hk_table {
    unsigned shift;
    size_t size;
    hk_slot slots[];
} hk_table;

struct hk_heaps {
    hk_slot first[HK_FIRST_SLOTS]; /* the table while threads are few */
    _Atomic uintptr_t factor;      /* of the hash in `first`; on a cache line that changes as rarely */
    _Atomic unsigned moves;        /* two for each move of heaps in `first`; odd meanwhile */
    _Atomic(hk_table *) table;     /* of those that found no room there; or NULL */
    _Atomic(hak_ctx *) newest;
    hak_ctx *sought; /* where the search for dead threads goes on */
    hk_lock lock;    /* table, list, labels, pressure */
    hk_lock walk;    /* one walk over all heaps at a time */
    atomic_bool retired;
    hak_quota account;         /* committed bytes of all heaps; its parent is the caller's quota */
    _Atomic size_t live, peak; /* sums of what heaps published */
    hak_options options;       /* of the heaps, with `settings` */
    hak_tuning settings;
    bool packs;            /* its heaps pack small blocks, if their settings say so */
    hk_lock settings_lock; /* the last: of settings and what follows */
    uint32_t settings_run; /* how often these changed */
    atomic_bool hinted;    /* by the policy */
};

_Static_assert((offsetof(hk_heaps, factor) + sizeof(uintptr_t)) % 64 == 0,
               "the end of a cache line of slots");

/* The first member of a hak_learner. */
typedef struct hk_learner_lock {
    hk_lock lock;
    hk_fork_hold fork;
} hk_learner_lock;

/* Makes ctx, which is new, a shared context. */
void hk_shared_make(hak_ctx *ctx, const hak_options *options);
/* Ends all heaps; the context itself is left. */
void hk_shared_destroy(hak_ctx *shared);
void hk_shared_retire(hak_ctx *shared);

HK_INLINE void hk_slots_clear(hk_slot *slot, size_t count, hak_ctx *shared)
{
    for (size_t i = 0; i < count; i++)
        atomic_store_explicit(&slot[i], shared, memory_order_relaxed);
}

/* They lie behind their context, so that finding a thread's heap needs no load of their address. */
HK_INLINE hk_heaps *hk_heaps_behind(hak_ctx *shared)
{
    return hk_behind(shared);
}

/* The number of a thread's first slot. */
HK_INLINE size_t hk_slot_number(uintptr_t factor, uintptr_t thread)
{
    return (thread * factor) >> (8 * sizeof thread - HK_FIRST_BITS);
}

/* Returns the slot where the search for a thread begins. */
HK_INLINE hk_slot *hk_slot_first(hk_heaps *heaps, uintptr_t thread)
{
    return &heaps->first[hk_slot_number(atomic_load_explicit(&heaps->factor, memory_order_relaxed), thread)];
}

/* A heap belongs to its thread alone as long as this says so to that thread. */
HK_INLINE uintptr_t hk_thread_of(const hak_ctx *heap)
{
    return atomic_load_explicit(&heap->thread, memory_order_relaxed);
}

/* Returns the calling thread's heap, and makes it if the thread has none yet. NULL = no memory, or
 * retired. */
HK_NOINLINE hak_ctx *hk_heap_claim(hak_ctx *shared, uintptr_t thread);

/* Makes *ctx, which is shared, the calling thread's heap if that is where it is looked for first. */
HK_INLINE bool hk_heap_quick(hak_ctx **ctx)
{
    uintptr_t thread = hk_thread_register();
    hk_slot *slot = hk_slot_first(hk_heaps_behind(*ctx), thread);
    hak_ctx *heap = atomic_load_explicit(slot, memory_order_acquire);
    if (HK_UNLIKELY(hk_thread_of(heap) != thread)) return false;
    *ctx = heap;
    return true;
}

HK_INLINE hak_ctx *hk_heap_here(hak_ctx *shared)
{
    hak_ctx *ctx = shared;
    return HK_LIKELY(hk_heap_quick(&ctx)) ? ctx : hk_heap_claim(shared, hk_thread_register());
}

HK_NOINLINE void hk_heap_lock(hak_ctx *heap);
/* The same by the heap's own thread, whose magazines may take what comes home. */
HK_NOINLINE void hk_heap_enter(hak_ctx *heap);
HK_NOINLINE void hk_heap_unlock(hak_ctx *heap);
bool hk_heap_try(hak_ctx *heap);
/* Waits a little. false = the lock is still held. */
bool hk_heap_soon(hak_ctx *heap);

/* A heap's own thread calls these around everything that it does beside its magazines. For a local context
 * they cost one test. */
HK_INLINE void hk_enter(hak_ctx *ctx)
{
    if (HK_UNLIKELY(ctx->role)) hk_heap_enter(ctx);
}

HK_INLINE void hk_leave(hak_ctx *ctx)
{
    if (HK_UNLIKELY(ctx->role)) hk_heap_unlock(ctx);
}

/* The lock of what all threads share of a context; a local one has none. */
HK_INLINE void hk_whole_lock(const hak_ctx *whole)
{
    if (whole->heaps) hk_lock_take(&whole->heaps->lock);
}

HK_INLINE void hk_whole_unlock(const hak_ctx *whole)
{
    if (whole->heaps) hk_lock_drop(&whole->heaps->lock);
}

/* Whether the callback is to be told that the soft limit was crossed. */
HK_INLINE bool hk_pressed(const hak_ctx *ctx)
{
    if (ctx->role == HK_HEAP)
        return atomic_load_explicit(&ctx->whole->heaps->account.crossed, memory_order_relaxed);
    return ctx->account.pressure;
}

/* The newest heap; heap->heap->next is the next. */
HK_INLINE hak_ctx *hk_heaps_first(const hak_ctx *shared)
{
    return atomic_load_explicit(&shared->heaps->newest, memory_order_acquire);
}

/* The next heap that this one, about to grow, asks for unused memory. */
HK_INLINE hak_ctx *hk_heap_after(hak_ctx *heap)
{
    hk_heap *h = heap->heap;
    hak_ctx *other = h->asked ? h->asked->heap->next : NULL;
    return h->asked = other ? other : hk_heaps_first(heap->whole);
}

/* The calling thread's heap if it has one. */
hak_ctx *hk_heap_find(hak_ctx *shared);
/* Whether the heap has no thread, so that its magazines may be touched. With its lock held. */
HK_INLINE bool hk_heap_unowned(const hak_ctx *heap)
{
    return hk_thread_of(heap) == 0;
}

/* Takes the heap from its thread. The caller holds the locks of the shared context and of the heap. */
void hk_heap_disown(hak_ctx *shared, hak_ctx *heap);
/* Gives the heap to a thread. The caller holds the lock of the shared context. false = no memory for so many
 * threads. */
bool hk_heap_own(hak_ctx *shared, hak_ctx *heap, uintptr_t thread);
/* Notes the calling thread's number as that of its heap. */
void hk_heap_renew(hak_ctx *heap);
/* Forwards a block of a kind, out of a stolen_from heap's magazines, to the heap that has its slab. */
void hk_heap_return(hak_ctx *heap, unsigned kind, void *p);
/* Forwards the blocks in a stolen_from heap's magazines whose slabs have moved. Before magazines are emptied.
 */
void hk_heap_sift(hak_ctx *heap);
/* Empties the magazines. Only the heap's thread calls this, or anybody for a heap without thread. */
void hk_heap_flush(hak_ctx *heap);
/* The same for a block that came home to a heap that no longer has its slab. */
void hk_heap_forward(hak_ctx *heap, void *p);
/* Takes in the strays of the heap, whose lock is held. */
void hk_heap_strays(hak_ctx *heap);
/* Takes a slab of the class with free blocks from a heap whose thread is away: from the heap whose blocks
 * this thread frees, or from one of the next few. NULL = none. */
hk_slab *hk_heap_steal(hak_ctx *heap, unsigned sc);
/* Takes over slabs and runs of threads that died without hak_ctx_thread_done. The heap is new. */
void hk_heap_reclaim(hak_ctx *heap);

/* Returns the class from which a thread's heap takes a block of class sc: sc itself while that class has free
 * blocks. Before the heap takes units for a class, or fresh blocks of more than 1 KiB, it uses up free blocks
 * of slightly wider classes. */
unsigned hk_borrow_class(hak_ctx *heap, unsigned sc);
/* Classes of blocks above 1 KiB may borrow as often as at first. */
void hk_borrow_anew(hak_ctx *heap);

/* Calls fn for each slab and run that the heap owns, with the heap's lock held, and drops that lock at times.
 * The caller holds the heap's lock for walks, so that there is one walk at a time. */
void hk_heap_walk(hak_ctx *heap, void (*fn)(hak_ctx *heap, hk_slab *s, void *user), void *user);
/* Does the same for a local context, or for all heaps of a shared one. The caller holds no lock. */
void hk_walk(hak_ctx *whole, void (*fn)(hak_ctx *heap, hk_slab *s, void *user), void *user);

/* Sets other settings for the heaps, which take them over at their next slow path. The caller holds the lock
 * of the context. */
void hk_shared_settings_change(hak_ctx *shared, const hak_tuning *t);
/* Sets those of a new shared context; gets those for a new heap, and returns which change of them it was. */
void hk_heaps_settings_set(hk_heaps *heaps, const hak_tuning *from);
uint32_t hk_heaps_settings_get(hk_heaps *heaps, hak_tuning *out);
/* Makes the heap take over what changed. The heap's thread calls this. */
void hk_heap_settings_follow(hak_ctx *heap);
/* Lets the heap take part in the profile of its shared context, if there is one. */
void hk_heap_observe(hak_ctx *heap);
/* Tells the shared context, whose lock is held, that it has a profile. Each thread takes part from its next
 * slow path. */
void hk_shared_observe(hak_ctx *shared);
/* Takes home the blocks in queues; those that are forwarded are then in the strays of their heap. */
void hk_shared_gather(hak_ctx *shared);
/* Brings home everything that is under way and in magazines. No other thread may be inside a call. */
void hk_shared_settle(hak_ctx *shared);
/* Returns the most live bytes so far; of a shared context, as far as its heaps have published. */
HK_INLINE size_t hk_peak_bytes(const hak_ctx *ctx)
{
    if (ctx->heaps) return atomic_load_explicit(&ctx->heaps->peak, memory_order_relaxed);
    return hk_max(hk_get(&ctx->account.peak), hk_get(&ctx->live_bytes));
}

/* Begins the peak anew. Blocks at hand would count in it, so the blocks that this thread may touch go home
 * first. */
void hk_shared_peak_reset(hak_ctx *shared);
/* Whether there is no live block, after hk_shared_settle. */
bool hk_shared_empty(const hak_ctx *shared);

#endif

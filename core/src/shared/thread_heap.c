#include "shared/thread_heap.h"

#include "heap/big.h"
#include "heap/guard.h"
#include "heap/label.h"
#include "heap/label_on.h"
#include "heap/magazine.h"
#include "heap/metadata.h"
#include "heap/packed.h"
#include "heap/placement.h"
#include "heap/slab.h"
#include "profile/profile.h"
#include "shared/remote.h"
#include "shared/transfer.h"

/* ---- Locks ---------------------------------------------------------------------------------------- */

static hk_heap *of(const hak_ctx *heap)
{
    return heap->heap;
}

/* Whether there is anything to take home. */
HK_INLINE bool awaited(const hk_heap *h)
{
    return (uintptr_t)atomic_load_explicit(&h->queue, memory_order_relaxed) |
           (uintptr_t)atomic_load_explicit(&h->strays, memory_order_relaxed);
}

enum { PATIENCE_MOST = 6 };

/* Makes the heaps of a shared context with a profile take part from their next slow path on, which asks
 * here. */
static void observe(hak_ctx *heap)
{
    if (!hk_profile_of(heap)) return;
    heap->checked |= HK_OBSERVED;
    heap->debug |= HK_DEBUG_PROFILE;
}

void hk_shared_observe(hak_ctx *shared)
{
    for (hak_ctx *heap = hk_heaps_first(shared); heap; heap = of(heap)->next) {
        hk_lock_take(&of(heap)->lock);
        if (!of(heap)->away) of(heap)->away = 1;
        hk_lock_drop(&of(heap)->lock);
    }
}

static HK_NOINLINE void come_back(hak_ctx *heap)
{
    observe(heap);
    of(heap)->away = of(heap)->away_ns = 0;
    /* It was taken for dead. */
    if (!of(heap)->thread_id) hk_heap_renew(heap);
    if (of(heap)->stolen_from) {
        hk_heap_sift(heap);
        of(heap)->stolen_from = false;
        if (of(heap)->patience < PATIENCE_MOST) of(heap)->patience++;
    }
    /* May flush magazines, which are sifted by now. */
    hk_heap_settings_follow(heap);
}

HK_INLINE void lock(hak_ctx *heap, bool own)
{
    hk_heap *h = of(heap);
    hk_lock_take(&h->lock);
    if (own && HK_UNLIKELY(h->away)) come_back(heap);
    if (HK_UNLIKELY(awaited(h))) hk_remote_drain(heap, own);
}

void hk_heap_lock(hak_ctx *heap)
{
    lock(heap, false);
}

void hk_heap_enter(hak_ctx *heap)
{
    lock(heap, true);
}

bool hk_heap_try(hak_ctx *heap)
{
    return hk_lock_try(&of(heap)->lock);
}

bool hk_heap_soon(hak_ctx *heap)
{
    return hk_lock_soon(&of(heap)->lock);
}

/* The sum of live bytes over all heaps follows in steps, so that its peak is known without stopping
 * anybody. */
static void publish(hak_ctx *heap)
{
    hk_heaps *heaps = heap->whole->heaps;
    HK_ASSERT(heap->role == HK_HEAP && hk_lock_held(&of(heap)->lock));
    size_t live = hk_get(&heap->live_bytes), by = live - of(heap)->published;
    if (HK_LIKELY(by + HK_HEAP_PUBLISHED <= 2 * (size_t)HK_HEAP_PUBLISHED)) return;
    of(heap)->published = live;
    size_t sum = atomic_fetch_add_explicit(&heaps->live, by, memory_order_relaxed) + by;
    size_t peak = atomic_load_explicit(&heaps->peak, memory_order_relaxed);
    while ((ptrdiff_t)sum > (ptrdiff_t)peak &&
           !atomic_compare_exchange_weak_explicit(&heaps->peak, &peak, sum, memory_order_relaxed,
                                                  memory_order_relaxed)) {
    }
}

void hk_heap_unlock(hak_ctx *heap)
{
    publish(heap);
    hk_lock_drop(&of(heap)->lock);
}

/* ---- Which heap is a thread's ---------------------------------------------------------------------- */

static hk_table *table_of(const hk_heaps *heaps)
{
    return atomic_load_explicit(&heaps->table, memory_order_acquire);
}

static uint64_t hash(uintptr_t thread)
{
    return thread * UINT64_C(0x9E3779B97F4A7C15);
}

static hak_ctx *heap_in(const hk_slot *slot)
{
    return atomic_load_explicit(slot, memory_order_acquire);
}

static void slots_clear(hk_slot *slot, size_t count, hak_ctx *shared)
{
    for (size_t i = 0; i < count; i++)
        atomic_store_explicit(&slot[i], shared, memory_order_relaxed);
}

static hk_table *table_new(hak_ctx *shared, unsigned bits)
{
    size_t size = ((size_t)1 << bits) + HK_PROBES; /* the last slots have followers, too */
    bool zero;
    hk_slab *s = hk_meta_units(shared, sizeof(hk_table) + size * sizeof(hk_slot), &zero);
    if (!s) return NULL;
    hk_table *t = hk_meta_start(shared, s);
    t->shift = 64 - bits;
    t->size = size;
    slots_clear(t->slots, size, shared);
    return t;
}

static bool slots_put(hk_slot *slot, hak_ctx *shared, hak_ctx *heap)
{
    for (unsigned i = 0; i < HK_PROBES; i++, slot++) {
        if (heap_in(slot) != shared) continue;
        atomic_store_explicit(slot, heap, memory_order_release);
        return true;
    }
    return false;
}

static hk_slot *slots_find(hk_slot *slot, uintptr_t thread)
{
    for (unsigned i = 0; i < HK_PROBES; i++, slot++)
        if (hk_thread_of(heap_in(slot)) == thread) return slot;
    return NULL;
}

static hk_slot *find_slot(hk_heaps *heaps, uintptr_t thread)
{
    hk_slot *slot = slots_find(hk_slot_first(heaps, thread), thread);
    hk_table *t = slot ? NULL : table_of(heaps);
    return t ? slots_find(&t->slots[hash(thread) >> t->shift], thread) : slot;
}

static bool table_put(hk_table *t, hak_ctx *shared, uintptr_t thread, hak_ctx *heap)
{
    return slots_put(&t->slots[hash(thread) >> t->shift], shared, heap);
}

static bool table_copy(hk_table *to, hak_ctx *shared, const hk_table *from)
{
    for (size_t i = 0; from && i < from->size; i++) {
        hak_ctx *heap = heap_in(&from->slots[i]);
        if (heap != shared && !table_put(to, shared, hk_thread_of(heap), heap)) return false;
    }
    return true;
}

/* With the lock of the shared context held. false = no memory for a table of so many threads. */
static bool put_slot(hak_ctx *shared, uintptr_t thread, hak_ctx *heap)
{
    hk_heaps *heaps = shared->heaps;
    if (slots_put(hk_slot_first(heaps, thread), shared, heap)) return true;
    hk_table *t = table_of(heaps);
    unsigned bits = t ? 64 - t->shift : HK_FIRST_BITS + 2;
    while (!t || !table_put(t, shared, thread, heap)) {
        hk_table *wider;
        do {
            wider = table_new(shared, ++bits);
            if (!wider) return false;
        } while (!table_copy(wider, shared, t));
        t = wider;
        atomic_store_explicit(&heaps->table, t, memory_order_release);
    }
    return true;
}

void hk_heap_renew(hak_ctx *heap)
{
    hak_os *os = &heap->space->os;
    of(heap)->thread_id = os->thread_id ? os->thread_id(os->user) : 0;
}

/* With the lock of the shared context held. */
static bool own(hak_ctx *shared, hak_ctx *heap, uintptr_t thread)
{
    if (!put_slot(shared, thread, heap)) return false;
    hk_lock_take(&of(heap)->lock);
    atomic_store_explicit(&heap->thread, thread, memory_order_relaxed);
    hk_heap_renew(heap);
    of(heap)->flushed = false;
    hk_lock_drop(&of(heap)->lock);
    return true;
}

void hk_heap_disown(hak_ctx *shared, hak_ctx *heap)
{
    if (hk_heap_unowned(heap)) return;
    hk_slot *slot = find_slot(shared->heaps, hk_thread_of(heap));
    if (slot) atomic_store_explicit(slot, shared, memory_order_release);
    of(heap)->left_by = hk_thread_of(heap);
    atomic_store_explicit(&heap->thread, 0, memory_order_relaxed);
}

hak_ctx *hk_heap_find(hak_ctx *shared)
{
    hk_slot *slot = find_slot(shared->heaps, hk_thread_register());
    return slot ? heap_in(slot) : NULL;
}

/* ---- Heaps ---------------------------------------------------------------------------------------- */

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
    for (hak_ctx *heap = hk_heaps_first(shared); heap && (!found || looks < LOOKS); heap = of(heap)->next) {
        looks++;
        if (!hk_heap_unowned(heap)) continue;
        if (of(heap)->left_by == thread) return heap;
        if (!found) found = heap;
    }
    return found;
}

hak_ctx *hk_heap_claim(hak_ctx *shared, uintptr_t thread)
{
    hk_heaps *heaps = shared->heaps;
    hk_slot *slot = find_slot(heaps, thread);
    if (slot) return heap_in(slot);
    if (atomic_load(&heaps->retired)) return NULL;
    hk_lock_take(&heaps->lock);
    hak_ctx *heap = heap_left(shared, thread);
    if (heap && !own(shared, heap, thread)) heap = NULL;
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
    observe(heap);
    hk_heap_settings_follow(heap);
    bool owned = own(shared, heap, thread);
    /* If the thread table is full, the heap stays in the list without an owner. A later thread will adopt
     * it. */
    of(heap)->next = hk_heaps_first(shared);
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
    slots_clear(heaps->first, HK_FIRST + HK_PROBES, shared);
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
        next = of(heap)->next;
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
    for (hak_ctx *heap = hk_heaps_first(shared); heap; heap = of(heap)->next) {
        hk_lock_take(&of(heap)->lock);
        hk_heap_disown(shared, heap);
        hk_lock_drop(&of(heap)->lock);
    }
    hk_lock_drop(&heaps->lock);
}

void hk_shared_gather(hak_ctx *shared)
{
    for (hak_ctx *heap = hk_heaps_first(shared); heap; heap = of(heap)->next) {
        hk_heap_lock(heap);
        hk_heap_unlock(heap);
    }
}

void hk_shared_settle(hak_ctx *shared)
{
    for (hak_ctx *heap = hk_heaps_first(shared); heap; heap = of(heap)->next) {
        hk_heap_lock(heap);
        hk_remote_send(heap);
        hk_heap_flush(heap);
        hk_heap_unlock(heap);
    }
    /* Blocks that heaps sent to each other, and from there to the heaps that have the slabs by now. */
    hk_shared_gather(shared);
    for (hak_ctx *heap = hk_heaps_first(shared); heap; heap = of(heap)->next) {
        hk_heap_lock(heap);
        hk_transfer_flush(heap);
        hk_heap_unlock(heap);
    }
}

void hk_shared_peak_reset(hak_ctx *shared)
{
    const hak_ctx *mine = hk_heap_find(shared);
    for (hak_ctx *heap = hk_heaps_first(shared); heap; heap = of(heap)->next) {
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
    for (hak_ctx *heap = hk_heaps_first(shared); heap; heap = of(heap)->next)
        blocks += hk_get(&heap->live_blocks);
    return blocks == 0;
}

void hk_heap_walk(hak_ctx *heap, void (*fn)(hak_ctx *heap, hk_slab *s, void *user), void *user)
{
    enum { STEP = 16 };
    hk_heap *h = of(heap);
    hk_heap_lock(heap);
    h->member.walk = heap->owned.all;
    while (h->member.walk) {
        for (unsigned i = 0; i < STEP && h->member.walk; i++) {
            hk_slab *s = hk_slab_at(heap->space, h->member.walk);
            h->member.walk = s->all_next;
            fn(heap, s, user);
        }
        hk_heap_unlock(heap);
        hk_heap_lock(heap);
    }
    hk_heap_unlock(heap);
}

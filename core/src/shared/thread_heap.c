#include "shared/thread_heap.h"

#include "heap/metadata.h"
#include "profile/profile.h"

/* ---- Locks ---------------------------------------------------------------------------------------- */

void hk_heap_observe(hak_ctx *heap)
{
    if (!hk_profile_of(heap)) return;
    heap->checked |= HK_OBSERVED;
    heap->debug |= HK_DEBUG_PROFILE;
}

void hk_shared_observe(hak_ctx *shared)
{
    for (hak_ctx *heap = hk_heaps_first(shared); heap; heap = heap->heap->next) {
        hk_lock_take(&heap->heap->lock);
        if (!heap->heap->away) heap->heap->away = 1;
        hk_lock_drop(&heap->heap->lock);
    }
}

bool hk_heap_try(hak_ctx *heap)
{
    return hk_lock_try(&heap->heap->lock);
}

bool hk_heap_soon(hak_ctx *heap)
{
    return hk_lock_soon(&heap->heap->lock);
}

/* The sum of live bytes over all heaps follows in steps, so that its peak is known without stopping
 * anybody. */
static void publish(hak_ctx *heap)
{
    hk_heaps *heaps = heap->whole->heaps;
    HK_ASSERT(heap->role == HK_HEAP && hk_lock_held(&heap->heap->lock));
    size_t live = hk_get(&heap->live_bytes), by = live - heap->heap->published;
    if (HK_LIKELY(by + HK_HEAP_PUBLISHED <= 2 * (size_t)HK_HEAP_PUBLISHED)) return;
    heap->heap->published = live;
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
    hk_lock_drop(&heap->heap->lock);
}

/* ---- Which heap is a thread's ---------------------------------------------------------------------- */

static hk_table *table_of(const hk_heaps *heaps)
{
    return atomic_load_explicit(&heaps->table, memory_order_acquire);
}

static uint64_t hash(uintptr_t thread)
{
    return thread * HK_FIRST_FACTOR;
}

static hak_ctx *heap_in(const hk_slot *slot)
{
    return atomic_load_explicit(slot, memory_order_acquire);
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
    hk_slots_clear(t->slots, size, shared);
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
    /* Acquire: whoever reads a new factor also sees that heaps move, which hk_heap_find() needs. */
    const uintptr_t factor = atomic_load_explicit(&heaps->factor, memory_order_acquire);
    hk_slot *slot = slots_find(&heaps->first[hk_slot_number(factor, thread)], thread);
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

/* Whether the factor gives each of these threads a first slot of its own. */
static bool tells_apart(uintptr_t factor, const uintptr_t *threads, size_t count)
{
    uint64_t taken = 0;
    _Static_assert(HK_FIRST <= 64, "a bit for each slot");
    for (size_t i = 0; i < count; i++) {
        const uint64_t bit = UINT64_C(1) << hk_slot_number(factor, threads[i]);
        if (taken & bit) return false;
        taken |= bit;
    }
    return true;
}

/* Looks for a factor under which this thread and all with heaps in `first` have slots of their own. 0 = none was
 * found: 20 threads have one, 25 in half of all processes. Threads that ended without hak_ctx_thread_done count. */
static uintptr_t factor_for(hak_ctx *shared, uintptr_t thread)
{
    enum { TRIES = 64 };
    const hk_heaps *heaps = shared->heaps;
    uintptr_t threads[HK_FIRST_SLOTS + 1],
        factor = atomic_load_explicit(&heaps->factor, memory_order_relaxed);
    size_t count = 0;
    threads[count++] = thread;
    for (size_t i = 0; i < HK_FIRST_SLOTS; i++) {
        const hak_ctx *heap = heap_in(&heaps->first[i]);
        if (heap != shared) threads[count++] = hk_thread_of(heap);
    }
    for (int i = 0; count <= HK_FIRST && i < TRIES; i++) {
        factor = (uintptr_t)hash(factor); /* odd, as both are */
        if (tells_apart(factor, threads, count)) return factor;
    }
    return 0;
}

/* Moves the heaps in `first` to where the factor looks for them. A thread that looks meanwhile and finds none
 * sees that heaps move: hk_heap_find(). A slot whose heap stays is not written. */
static void move_heaps(hak_ctx *shared, uintptr_t factor)
{
    hk_heaps *heaps = shared->heaps;
    hak_ctx *there[HK_FIRST_SLOTS];
    for (size_t i = 0; i < HK_FIRST_SLOTS; i++)
        there[i] = shared;
    for (size_t i = 0; i < HK_FIRST_SLOTS; i++) {
        hak_ctx *heap = heap_in(&heaps->first[i]);
        if (heap != shared) there[hk_slot_number(factor, hk_thread_of(heap))] = heap;
    }
    atomic_fetch_add(&heaps->moves, 1);
    atomic_store(&heaps->factor, factor);
    for (size_t i = 0; i < HK_FIRST_SLOTS; i++)
        if (heap_in(&heaps->first[i]) != there[i]) atomic_store(&heaps->first[i], there[i]);
    atomic_fetch_add(&heaps->moves, 1);
}

/* Empties the first slot of the thread, where that is possible. */
static void move_apart(hak_ctx *shared, uintptr_t thread)
{
    if (heap_in(hk_slot_first(shared->heaps, thread)) == shared) return;
    const uintptr_t factor = factor_for(shared, thread);
    if (factor != 0) move_heaps(shared, factor);
}

/* With the lock of the shared context held. false = no memory for a table of so many threads. */
static bool put_slot(hak_ctx *shared, uintptr_t thread, hak_ctx *heap)
{
    hk_heaps *heaps = shared->heaps;
    move_apart(shared, thread);
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
    heap->heap->thread_id = os->thread_id ? os->thread_id(os->user) : 0;
}

bool hk_heap_own(hak_ctx *shared, hak_ctx *heap, uintptr_t thread)
{
    if (!put_slot(shared, thread, heap)) return false;
    hk_lock_take(&heap->heap->lock);
    atomic_store_explicit(&heap->thread, thread, memory_order_relaxed);
    hk_heap_renew(heap);
    heap->heap->flushed = false;
    hk_lock_drop(&heap->heap->lock);
    return true;
}

void hk_heap_disown(hak_ctx *shared, hak_ctx *heap)
{
    if (hk_heap_unowned(heap)) return;
    hk_slot *slot = find_slot(shared->heaps, hk_thread_of(heap));
    if (slot) atomic_store_explicit(slot, shared, memory_order_release);
    heap->heap->left_by = hk_thread_of(heap);
    atomic_store_explicit(&heap->thread, 0, memory_order_relaxed);
}

/* Only this thread gives itself a heap, so where it finds none while none moves, it has none. The list of heaps tells
 * the truth at any time, but has those of all threads that ever were. */
hak_ctx *hk_heap_find(hak_ctx *shared)
{
    hk_heaps *heaps = shared->heaps;
    const uintptr_t thread = hk_thread_register();
    const unsigned moves = atomic_load(&heaps->moves);
    const hk_slot *slot = find_slot(heaps, thread);
    hak_ctx *heap = slot ? heap_in(slot) : NULL;
    if (heap && hk_thread_of(heap) == thread) return heap; /* another may have come there meanwhile */
    if (!slot && moves % 2 == 0 && atomic_load(&heaps->moves) == moves) return NULL;
    heap = hk_heaps_first(shared);
    while (heap && hk_thread_of(heap) != thread)
        heap = heap->heap->next;
    return heap;
}

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
    return thread * UINT64_C(0x9E3779B97F4A7C15);
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

hak_ctx *hk_heap_find(hak_ctx *shared)
{
    hk_slot *slot = find_slot(shared->heaps, hk_thread_register());
    return slot ? heap_in(slot) : NULL;
}

/* Gives new numbers to a shared context: each heap takes them over on its own thread, one by one. */
#include "heap/numbers.h"
#include "heap/guide.h"
#include "shared/thread_heap.h"

void hk_heaps_numbers_set(hk_heaps *heaps, const hak_tuning *from)
{
    heaps->tuning = *from;
    /* There are many threads, and no thread has all sizes of the context. */
    if (heaps->tuning.packed_bytes != HAK_NONE)
        heaps->tuning.packed_bytes = hk_max(heaps->tuning.packed_bytes / 16, 1);
}

uint32_t hk_heaps_numbers_get(hk_heaps *heaps, hak_tuning *out)
{
    hk_lock_take(&heaps->numbers);
    *out = heaps->tuning;
    uint32_t run = heaps->tunings;
    hk_lock_drop(&heaps->numbers);
    return run;
}

/* Numbers that are read when a context is made. A new heap must not have others than the heaps before it:
 * heaps exchange slabs, whose first blocks lie where first_offset says, and hak_aligned_alloc trusts the
 * number of the context. */
static void keep_layout(const hk_heaps *heaps, hak_tuning *t)
{
    t->first_offset = heaps->tuning.first_offset;
    t->slab_sizes = heaps->tuning.slab_sizes;
    if (!heaps->packs) t->packed_bytes = HAK_NONE;
}

void hk_shared_numbers(hak_ctx *shared, const hak_tuning *from)
{
    hk_heaps *heaps = shared->heaps;
    hak_tuning t = *from;
    hk_numbers_set(shared, &t);
    hk_lock_take(&heaps->numbers);
    keep_layout(heaps, &t);
    shared->packed.most = (uint16_t)hk_packed_units(&heaps->options, &t);
    hk_heaps_numbers_set(heaps, &t);
    heaps->tunings++;
    hk_lock_drop(&heaps->numbers);
    atomic_store(&heaps->hinted, hk_guide_hints(shared->advice.guide));
    hk_shared_observe(shared);
}

void hk_heap_numbers(hak_ctx *heap)
{
    hk_heaps *heaps = heap->whole->heaps;
    hak_tuning t;
    uint32_t run = hk_heaps_numbers_get(heaps, &t);
    heap->advice.hinted = atomic_load(&heaps->hinted);
    if (heap->heap->tunings == run) return;
    heap->heap->tunings = run;
    hk_numbers_change(heap, &t);
}

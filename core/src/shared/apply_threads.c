/* Gives other settings to a shared context: each heap takes them over on its own thread, one by one. */
#include "heap/apply_heap.h"
#include "heap/hints.h"
#include "shared/thread_heap.h"

void hk_heaps_settings_set(hk_heaps *heaps, const hak_tuning *from)
{
    heaps->settings = *from;
    /* There are many threads, and no thread has all sizes of the context. */
    if (heaps->settings.packed_bytes != HAK_NONE)
        heaps->settings.packed_bytes = hk_max(heaps->settings.packed_bytes / 16, 1);
}

uint32_t hk_heaps_settings_get(hk_heaps *heaps, hak_tuning *out)
{
    hk_lock_take(&heaps->settings_lock);
    *out = heaps->settings;
    uint32_t run = heaps->settings_run;
    hk_lock_drop(&heaps->settings_lock);
    return run;
}

#define KEEP_ONCE(name) t->name = heaps->settings.name;
#define KEEP_LATER(name)
#define KEEP(name, in, none, when, ...) KEEP_##when(name)

/* A new heap must not go by others than the heaps before it: heaps exchange slabs, whose first blocks lie
 * where first_offset says, and hak_aligned_alloc trusts the context's. */
static void keep_layout(const hk_heaps *heaps, hak_tuning *t)
{
    HK_EACH_SETTING(KEEP)
    if (!heaps->packs) t->packed_bytes = HAK_NONE;
}

void hk_shared_settings_change(hak_ctx *shared, const hak_tuning *from)
{
    hk_heaps *heaps = shared->heaps;
    hak_tuning t = *from;
    hk_heap_settings_set(shared, &t);
    hk_lock_take(&heaps->settings_lock);
    keep_layout(heaps, &t);
    shared->packed.most = (uint16_t)hk_packed_units(&heaps->options, &t);
    hk_heaps_settings_set(heaps, &t);
    heaps->settings_run++;
    hk_lock_drop(&heaps->settings_lock);
    atomic_store(&heaps->hinted, hk_hints_any(shared->settings.hints));
    hk_shared_observe(shared);
}

void hk_heap_settings_follow(hak_ctx *heap)
{
    hk_heaps *heaps = heap->whole->heaps;
    hak_tuning t;
    uint32_t run = hk_heaps_settings_get(heaps, &t);
    heap->settings.hinted = atomic_load(&heaps->hinted);
    if (heap->heap->settings_run == run) return;
    heap->heap->settings_run = run;
    hk_heap_settings_change(heap, &t);
}

#include "vm_take.h"

vm_heap *vm_heap_new(hak_space *space, const vm_kind *kind, bool labels)
{
    hak_sites_options sites = HAK_SITES_OPTIONS_INIT;
    hak_options options = HAK_OPTIONS_INIT;
    hak_tuning tuning = HAK_TUNING_INIT;
    sites.rules = kind->rules;
    sites.rule_count = kind->rule_count;
    if (labels && !*kind->sites) *kind->sites = hak_sites_new(&sites);
    options.name = kind->name;
    options.labels = hak_sites_labels(*kind->sites, &options.label_count);
    options.workload = kind->workload;
    options.tuning = &tuning;
    tuning.packed_bytes = kind->packed_bytes;
    hak_ctx *ctx = hak_ctx_new(space, &options);
    vm_heap *heap = ctx ? hak_calloc(ctx, 1, sizeof *heap) : NULL;
    if (!heap) {
        hak_ctx_destroy(ctx);
        return NULL;
    }
    heap->ctx = ctx;
    if (labels) heap->sites = *kind->sites;
    return heap;
}

void vm_heap_drop(vm_heap *heap)
{
    if (heap) hak_ctx_destroy(heap->ctx);
}

void vm_heap_limit(vm_heap *heap, size_t limit, hak_pressure_fn *near, void *user)
{
    hak_reserve_limit(&heap->reserve, heap->ctx, 0, limit, 0, near, user);
}

void *vm_heap_refused(vm_heap *heap, size_t n)
{
    if (!hak_reserve_refused(&heap->reserve, n)) return NULL;
    heap->given_up++;
    if (heap->escape) longjmp(*heap->escape, 1);
    return NULL;
}

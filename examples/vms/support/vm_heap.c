#include "vm_take.h"

enum { RESERVE = 64 << 10 };

vm_heap *vm_heap_new(hak_space *space, const vm_kind *kind, bool labels)
{
    hak_options options = HAK_OPTIONS_INIT;
    hak_tuning tuning = HAK_TUNING_INIT;
    options.name = kind->name;
    options.labels = kind->labels;
    options.label_count = kind->label_count;
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
    heap->tries = 1;
    if (labels && sites_open(kind->places, kind->rules)) heap->places = kind->places;
    return heap;
}

void vm_heap_drop(vm_heap *heap)
{
    if (heap) hak_ctx_destroy(heap->ctx);
}

static void set_limit(vm_heap *heap, size_t hard);

static void crossed(hak_ctx *ctx, void *user, size_t committed, size_t limit)
{
    (void)ctx, (void)committed, (void)limit;
    vm_heap *heap = user;
    set_limit(heap, heap->limit - heap->reserve);
    if (heap->near) heap->near(heap->user);
}

static void set_limit(vm_heap *heap, size_t hard)
{
    hak_limit(heap->ctx, heap->limit / 4 * 3, hard, crossed, heap);
}

void vm_heap_limit(vm_heap *heap, size_t limit, void (*near)(void *user), void *user)
{
    heap->limit = limit;
    heap->reserve = limit / 8 < RESERVE ? limit / 8 : RESERVE;
    heap->near = near;
    heap->user = user;
    set_limit(heap, limit - heap->reserve);
}

void *vm_heap_refused(vm_heap *heap, size_t n)
{
    if (heap->tries > 1) {
        if (!heap->wanted) heap->wanted = n, heap->refused = 0;
        if (heap->wanted != n || ++heap->refused < heap->tries) return NULL;
        heap->wanted = 0;
    }
    heap->given_up++;
    if (heap->escape) longjmp(*heap->escape, 1);
    if (heap->limit) set_limit(heap, heap->limit);
    return NULL;
}

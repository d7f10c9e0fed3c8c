/* For the functions that a machine calls for memory: see vm_heap.h. */
#ifndef VMS_VM_TAKE_H
#define VMS_VM_TAKE_H

#include "vm_heap.h"

#include <hakmem/tuning.h>

/* What all heaps of one kind of machine have in common. */
typedef struct vm_kind {
    const char *name;
    const hak_site_rule *rules;
    size_t rule_count;
    hak_sites **sites; /* made with the first heap that has labels, and never deleted */
    hak_workload workload;
    size_t packed_bytes; /* as in hak_tuning */
} vm_kind;

/* labels: by call site. NULL = no memory. The struct lies in the heap. */
vm_heap *vm_heap_new(hak_space *space, const vm_kind *kind, bool labels);

/* sp: HAK_SITES_SP() of the function that the machine calls. */
static inline void *vm_take(vm_heap *heap, size_t n, uintptr_t sp)
{
    void *p = hak_alloc_cs(heap->ctx, n, hak_sites_label(heap->sites, sp), 0);
    return p ? p : vm_heap_refused(heap, n);
}

static inline void *vm_take_zeroed(vm_heap *heap, size_t count, size_t n, uintptr_t sp)
{
    void *p = hak_calloc_cs(heap->ctx, count, n, hak_sites_label(heap->sites, sp), 0);
    return p ? p : vm_heap_refused(heap, n);
}

/* p is a block; it keeps its label. */
static inline void *vm_resize(vm_heap *heap, void *p, size_t n)
{
    void *q = hak_realloc(heap->ctx, p, n);
    return q ? q : vm_heap_refused(heap, n);
}

/* p, of n bytes or NULL, is what a machine gets that tries more than once. */
static inline void *vm_taken(vm_heap *heap, void *p, size_t n)
{
    return hak_reserve_served(&heap->reserve, p, n);
}

static inline void vm_give(vm_heap *heap, void *p)
{
    hak_free(heap->ctx, p);
}

#endif

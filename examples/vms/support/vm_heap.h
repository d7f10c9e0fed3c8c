/* The heap of a machine that takes all its memory through one function: labels by call site, and a limit
 * whose last part is for the error itself. */
#ifndef VMS_VM_HEAP_H
#define VMS_VM_HEAP_H

#include <hakmem/report.h>
#include <setjmp.h>

typedef struct vm_heap {
    hak_ctx *ctx;
    hak_sites *sites;    /* NULL = no labels */
    hak_reserve reserve; /* its tries: of a machine whose blocks go through hak_reserve_served */
    size_t given_up;     /* how often the machine gave up for want of memory */
    jmp_buf *escape; /* where a refused allocation goes instead of returning, while a machine cannot be told
                        "no": the heap is good for vm_heap_drop alone then. NULL = it returns NULL */
} vm_heap;

/* Everything at once; NULL is fine. */
void vm_heap_drop(vm_heap *heap);
/* 0 = none. near: called at the start of an allocation that crosses three quarters of the limit; a collector
 * may be asked to run. May be NULL. */
void vm_heap_limit(vm_heap *heap, size_t limit, hak_pressure_fn *near, void *user);
/* An allocation of n bytes was refused: see hak_reserve_refused. NULL. */
void *vm_heap_refused(vm_heap *heap, size_t n);

#endif

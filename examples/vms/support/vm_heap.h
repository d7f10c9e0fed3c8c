/* The heap of a machine that takes all its memory through one function: labels by call site, and a limit whose
 * last part is for the error itself. A machine that is told "no" makes an object of the error, which needs
 * memory as well. */
#ifndef VMS_VM_HEAP_H
#define VMS_VM_HEAP_H

#include <hakmem/hakmem.h>
#include <setjmp.h>

typedef struct vm_heap {
    hak_ctx *ctx;
    struct sites *places; /* NULL = no labels */
    size_t limit, reserve;
    void (*near)(void *user);
    void *user;
    size_t tries;    /* how often the machine asks for one block, with a collection between, before it gives up; 1,
                        until the machine changes it, whose blocks go through vm_taken then */
    size_t wanted;   /* the size that it asks for again; 0 = none */
    size_t refused;  /* how often already */
    size_t given_up; /* how often it gave up */
    jmp_buf *escape; /* where a refused allocation goes instead of returning, while a machine cannot be told "no":
                        the heap is good for vm_heap_drop alone then. NULL = it returns NULL */
} vm_heap;

/* Everything at once; NULL is fine. */
void vm_heap_drop(vm_heap *heap);
/* 0 = none. near: called at the start of an allocation that crosses three quarters of the limit; a collector may
 * be asked to run. May be NULL. */
void vm_heap_limit(vm_heap *heap, size_t limit, void (*near)(void *user), void *user);
/* An allocation of n bytes was refused: if the machine gives up now, what was reserved is there for the error, and
 * until the heap has fallen below three quarters of the limit and crosses them again. What a collection asks for in
 * between is refused without opening the reserve. NULL. */
void *vm_heap_refused(vm_heap *heap, size_t n);

#endif

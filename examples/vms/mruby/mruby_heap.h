/* mruby on hakmem: a heap for each interpreter. */
#ifndef MRUBY_HEAP_H
#define MRUBY_HEAP_H

#include "vm_heap.h"

#include <mruby.h>

/* The heap of an interpreter, which vm_heap_drop ends together with it. labels: by call site. NULL = no memory. */
vm_heap *mruby_heap_new(hak_space *space, bool labels);
/* NULL = no memory: the heap can only be dropped. */
mrb_state *mruby_new(vm_heap *heap);
/* Compiles a program, for mrb_top_run. NULL = a mistake in it, or no memory: then the heap can only be dropped, and
 * `lost` is set. */
struct RProc *mruby_compile(vm_heap *heap, mrb_state *mrb, const char *text, size_t length, bool *lost);
/* Over it the program gets NoMemoryError. mruby collects by itself before. 0 = none. */
void mruby_limit(vm_heap *heap, size_t limit);

#endif

/* mruby on hakmem: a heap for each interpreter. */
#ifndef MRUBY_HEAP_H
#define MRUBY_HEAP_H

#include "vm_heap.h"

#include <mruby.h>

/* The heap of an interpreter, which vm_heap_drop ends together with it. labels: by call site. NULL = no memory. */
vm_heap *mruby_heap_new(hak_space *space, bool labels);
/* NULL = no memory: the heap can only be dropped. */
mrb_state *mruby_new(vm_heap *heap);
/* NULL = mruby has another allocator. */
vm_heap *mruby_heap_of(const mrb_state *mrb);
/* Compiles a program, for mrb_top_run. NULL = a mistake in it, or no memory: then mrb->exc is set. mrb_load_string and
 * its kin do not see the lack of memory. */
struct RProc *mruby_compile(mrb_state *mrb, const char *text, size_t length);
/* Over it the program gets NoMemoryError. mruby collects by itself before. 0 = none. */
void mruby_limit(vm_heap *heap, size_t limit);

#endif

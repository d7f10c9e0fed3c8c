/* Duktape on hakmem: a heap for each of its heaps. */
#ifndef DUKTAPE_HEAP_H
#define DUKTAPE_HEAP_H

#include "vm_heap.h"

#include <duktape.h>

/* The memory of one machine, which vm_heap_drop ends together with it. labels: by call site. NULL = no memory. */
vm_heap *duktape_heap_new(hak_space *space, bool labels);
/* NULL = no memory: the heap can only be dropped. */
duk_context *duktape_new(vm_heap *heap);
/* Over it Duktape collects, and then the program gets `Error: alloc failed`. 0 = none. */
void duktape_limit(vm_heap *heap, size_t limit);

#endif

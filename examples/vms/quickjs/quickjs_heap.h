/* QuickJS-ng on hakmem: a heap for each runtime. */
#ifndef QUICKJS_HEAP_H
#define QUICKJS_HEAP_H

#include "vm_heap.h"

#include <quickjs.h>

/* The heap of a runtime, which vm_heap_drop ends together with it. labels: by call site. NULL = no memory. */
vm_heap *quickjs_heap_new(hak_space *space, bool labels);
/* NULL = no memory. */
JSRuntime *quickjs_runtime_new(vm_heap *heap);
/* Over it the program gets `InternalError: out of memory`. From three quarters on, the collector runs. 0 = none. */
void quickjs_limit(JSRuntime *runtime, vm_heap *heap, size_t limit);

#endif

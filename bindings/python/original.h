/* The allocators that were there before: they own every block that the context does not. */
#ifndef HK_PY_ORIGINAL_H
#define HK_PY_ORIGINAL_H

#include "core.h"

/* Written before the hooks of the domain are installed; never changed while they are. */
extern hk_py_allocator hk_py_original[3];
extern hk_py_arena_allocator hk_py_original_arena;

/* hk_py_foreign to whom it belongs. */
void hk_py_pass_free(hk_py_domain domain);
void hk_py_pass_arena(size_t n);

#endif

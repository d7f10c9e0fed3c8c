#include "original.h"

#include "heap.h"

hk_py_allocator hk_py_original[3];
hk_py_arena_allocator hk_py_original_arena;

static void *foreign(void)
{
    void *p = hk_py_foreign;
    hk_py_foreign = NULL;
    return p;
}

void hk_py_pass_free(hk_py_domain domain)
{
    hk_py_original[domain].free(hk_py_original[domain].ctx, foreign());
}

void hk_py_pass_arena(size_t n)
{
    hk_py_original_arena.free(hk_py_original_arena.ctx, foreign(), n);
}

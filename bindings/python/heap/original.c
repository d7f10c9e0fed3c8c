#include "heap/original.h"

#include "heap/heap.h"

hkp_allocator hkp_original[3];
hkp_arena_allocator hkp_original_arena;

static void *foreign(void)
{
    void *p = hkp_foreign;
    hkp_foreign = NULL;
    return p;
}

void hkp_pass_free(hkp_domain domain)
{
    hkp_original[domain].free(hkp_original[domain].ctx, foreign());
}

void hkp_pass_arena(size_t n)
{
    hkp_original_arena.free(hkp_original_arena.ctx, foreign(), n);
}

#include "heap/original.h"

#include "heap/heap.h"
#include "heap/libc.h"

static void *libc_realloc(void *ctx, void *p, size_t n)
{
    (void)ctx;
    return hkp_libc_realloc(p, n);
}

static void libc_free(void *ctx, void *p)
{
    (void)ctx;
    hkp_libc_free(p);
}

hkp_allocator hkp_original[HKP_DOMAINS] = {[HKP_MALLOC] = {.realloc = libc_realloc, .free = libc_free}};
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

/* CPython up to 3.13 puts its default allocator into RAW for moments: when it starts, when it ends, and
 * whenever a subinterpreter starts (_PyMem_SetDefaultAllocator). A block of hakmem that another thread frees
 * or moves in such a moment comes to libc. The preloaded hook stands before it. */
#include "heap/heap.h"
#include "heap/libc.h"

HKP_API void free(void *p)
{
    if (HKP_UNLIKELY(hkp_is_block(p))) hkp_provider_current()->hooks->domains[HKP_RAW].free(NULL, p);
    else hkp_libc_free(p);
}

HKP_API void *realloc(void *p, size_t n)
{
    if (HKP_UNLIKELY(hkp_is_block(p)))
        return hkp_provider_current()->hooks->domains[HKP_RAW].realloc(NULL, p, n);
    return hkp_libc_realloc(p, n);
}

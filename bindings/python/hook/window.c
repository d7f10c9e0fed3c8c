/* CPython up to 3.13 puts its default allocator into RAW for moments: when it starts, when it ends, and
 * whenever a subinterpreter starts (_PyMem_SetDefaultAllocator). A block of hakmem that another thread frees
 * or moves in such a moment comes to libc. The preloaded hook stands before it. */
#define _GNU_SOURCE
#include "base/core.h"
#include "heap/heap.h"

#include <dlfcn.h>
#include <string.h>

static void (*next_free)(void *p);
static void *(*next_realloc)(void *p, size_t n);

/* dlsym begins by freeing the text of the last error. volatile: the compiler takes dlsym for a leaf. */
static _Thread_local volatile bool finding;

/* Each thread that comes here finds the same. */
static __attribute__((noinline, cold)) void find(const char *name, void *function)
{
    finding = true;
    void *address = dlsym(RTLD_NEXT, name);
    finding = false;
    memcpy(function, &address, sizeof address);
}

HKP_API void free(void *p)
{
    if (HKP_UNLIKELY(hkp_is_block(p))) {
        hkp_provider_current()->hooks->domains[HKP_RAW].free(NULL, p);
        return;
    }
    if (HKP_UNLIKELY(!next_free)) {
        if (finding) return; /* that text is lost */
        find("free", &next_free);
    }
    next_free(p);
}

HKP_API void *realloc(void *p, size_t n)
{
    if (HKP_UNLIKELY(hkp_is_block(p)))
        return hkp_provider_current()->hooks->domains[HKP_RAW].realloc(NULL, p, n);
    if (HKP_UNLIKELY(!next_realloc)) find("realloc", &next_realloc);
    return next_realloc(p, n);
}

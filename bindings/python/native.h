/* Which part of CPython, or which extension, asked for a block: by the code that called the allocator. */
#ifndef HK_PY_NATIVE_H
#define HK_PY_NATIVE_H

#include "cfi.h"
#include "core.h"
#include "site_cache.h"
#include "symbols.h"

/* NULL = ready, else why there can be no such labels here. */
const char *hk_py_native_start(hak_ctx *ctx);

/* Where the names come from, to say how good they are. */
hk_symbols_source hk_py_native_source(void);

/* The program has scopes from now on. */
void hk_py_native_scoped(void);
/* While Python is awaited, most places are new: pages of tables are kept. */
void hk_py_native_await(bool awaited);

#ifdef HK_CFI_WALK

/* What is in the cache are labels of the context. */
enum { HK_PY_SITE_SLOTS = 4096 };
extern hk_site_word hk_py_sites[HK_PY_SITE_SLOTS + HK_SITE_PROBES] HK_PY_HIDDEN;
/* The same for the allocation path, or with scopes of the program, which go before, an empty one. */
extern hk_site_word *hk_py_sites_at_hand HK_PY_HIDDEN;

/* The label for a block. sp: what it was in the caller of the hook, before the call. Keeps errno, locks
 * nothing but what dl_iterate_phdr locks. */
hak_label hk_py_native_find(uintptr_t sp);

/* Up from the hook to the first function that is no helper: with about ten instructions and two loads for
 * each of one to three frames. Negative = not known at once. */
HK_PY_INLINE int hk_py_native_label(uintptr_t sp)
{
    hk_site_word *sites = hk_py_sites_at_hand;
    uint64_t info = hk_site_home(sites, HK_PY_SITE_SLOTS, ((const uintptr_t *)sp)[-1]);
    if (HK_PY_LIKELY(info < HK_SITE_CLIMB)) return (int)info;
    do {
        if (HK_PY_UNLIKELY(info > HK_SITE_INFO)) return -1;
        sp += (info - HK_SITE_CLIMB) * sizeof(uintptr_t);
        info = hk_site_home(sites, HK_PY_SITE_SLOTS, ((const uintptr_t *)sp)[-1]);
        __asm__("" : "+r"(info)); /* not to become one with the code above, by a jump */
    } while (info >= HK_SITE_CLIMB);
    return (int)info;
}

#else

#define HK_CFI_SP_ABOVE() 0

HK_PY_INLINE int hk_py_native_label(uintptr_t sp)
{
    return (int)sp;
}

HK_PY_INLINE hak_label hk_py_native_find(uintptr_t sp)
{
    return (hak_label)sp;
}

#endif

/* For hooks.h: the labels of blocks are these. */
#define HK_PY_WHERE() HK_CFI_SP_ABOVE()
#define HK_PY_LABEL(domain, where) ((void)(domain), hk_py_native_label(where))
#define HK_PY_LABEL_FIND(domain, where) ((void)(domain), hk_py_native_find(where))
#ifdef HK_CFI_WALK
#endif

#endif

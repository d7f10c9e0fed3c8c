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

#ifdef HK_CFI_WALK

/* What is in the cache are labels of the context. */
enum { HK_PY_SITE_SLOTS = 4096 };
extern hk_site_word hk_py_sites[HK_PY_SITE_SLOTS + HK_SITE_PROBES];

/* The label for a block; sp: HK_CFI_CALLER_SP of the hook. Keeps errno, locks nothing but what
 * dl_iterate_phdr locks. */
hak_label hk_py_native_find(uintptr_t sp);

/* Up from the hook to the first function that is no helper: with about ten instructions and two loads for
 * each of one to three frames. */
HK_PY_INLINE hak_label hk_py_native_label(uintptr_t caller_sp)
{
    uintptr_t sp = caller_sp;
    for (;;) {
        uintptr_t pc = ((const uintptr_t *)sp)[-1];
        uint64_t word = hk_site_home(hk_py_sites, HK_PY_SITE_SLOTS, pc);
        if (HK_PY_UNLIKELY(word >> 16 != pc)) return hk_py_native_find(caller_sp);
        if (HK_PY_LIKELY(!(word & HK_SITE_CLIMB))) return (hak_label)(word & HK_SITE_INFO);
        sp += (word & (HK_SITE_CLIMB - 1)) * sizeof(uintptr_t);
    }
}

#else

#define HK_CFI_CALLER_SP() 0

HK_PY_INLINE hak_label hk_py_native_label(uintptr_t caller_sp)
{
    return (hak_label)caller_sp;
}

#endif
#endif

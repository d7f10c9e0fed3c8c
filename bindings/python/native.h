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

/* In a hook, where sp is HK_CFI_CALLER_SP: the frame pointer of its caller. */
#define HK_PY_CALLER_FP(sp) (((const uintptr_t *)(sp))[-2])

/* The label for a block. Keeps errno, locks nothing but what dl_iterate_phdr locks. */
hak_label hk_py_native_find(uintptr_t sp, uintptr_t fp);

/* Up from the hook to the first function that is no helper: with about ten instructions and two loads for
 * each of one to three frames. 0 = not known at once. */
HK_PY_INLINE hak_label hk_py_native_label(uintptr_t sp)
{
    for (;;) {
        uintptr_t pc = ((const uintptr_t *)sp)[-1];
        uint64_t word = hk_site_home(hk_py_sites, HK_PY_SITE_SLOTS, pc);
        if (HK_PY_UNLIKELY(word >> 16 != pc)) return 0;
        if (HK_PY_LIKELY(!(word & HK_SITE_CLIMB))) {
            hak_label label = (hak_label)(word & HK_SITE_INFO);
            if (label == 0) __builtin_unreachable(); /* none of that is remembered */
            return label;
        }
        sp += (word & (HK_SITE_CLIMB - 1)) * sizeof(uintptr_t);
    }
}

#else

#define HK_CFI_CALLER_SP() 0
#define HK_PY_CALLER_FP(sp) (sp)

HK_PY_INLINE hak_label hk_py_native_label(uintptr_t sp)
{
    return (hak_label)sp;
}

HK_PY_INLINE hak_label hk_py_native_find(uintptr_t sp, uintptr_t fp)
{
    return (hak_label)(sp | fp);
}

#endif

/* For hooks.h: the labels of blocks are these. */
#define HK_PY_WHERE() HK_CFI_CALLER_SP()
#define HK_PY_WHERE_FP(where) HK_PY_CALLER_FP(where)
#define HK_PY_LABEL(domain, where) ((void)(domain), hk_py_native_label(where))
#define HK_PY_LABEL_FIND(domain, where, fp) ((void)(domain), hk_py_native_find(where, fp))

#endif

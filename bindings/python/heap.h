/* The one context of the process, and how a thread gets at it. */
#ifndef HK_PY_HEAP_H
#define HK_PY_HEAP_H

#include "core.h"

#include <hakmem/inline.h>

/* The calling thread's heap; hk_py_none = none yet, with nothing at hand and no room. Initial-exec: two words
 * at most, which the loader can place also when the module loads this library late. */
extern _Thread_local hak_ctx *hk_py_mine __attribute__((tls_model("initial-exec")));
#define hk_py_none ((hak_ctx *)(void *)&hk_py_no_heap)
extern hak_inline_ctx hk_py_no_heap HK_PY_HIDDEN;
/* What the last free of this thread could not free, since it is not ours; NULL = all was. */
extern _Thread_local void *hk_py_foreign __attribute__((tls_model("initial-exec")));

/* Whether p is the start of a block of hakmem's, in use; also before there is a context. */
bool hk_py_is_block(const void *p);

/* Finds the heap, or without memory for one gives the shared context, which does the same slower. */
hak_ctx *hk_py_heap_find(void);

/* The hooks are installed after the context exists. */
HK_PY_INLINE hak_ctx *hk_py_heap(void)
{
    hak_ctx *heap = hk_py_mine;
    return HK_PY_LIKELY(heap != hk_py_none) ? heap : hk_py_heap_find();
}

/* CPython wants every block 16-aligned, which a multiple of 16 is. n is at most PTRDIFF_MAX: CPython
 * refuses more before it calls an allocator. The last of these bytes, counted from 0, where n is not 0; for 0
 * more than any block has. */
HK_PY_INLINE size_t hk_py_last(size_t n)
{
    return (n - 1) | 15;
}
HK_PY_INLINE size_t hk_py_round(size_t n)
{
    return hk_py_last(n + (n == 0)) + 1;
}

/* Whether a block made for `size` bytes, a multiple of 16, is known to be no larger. */
HK_PY_INLINE bool hk_py_fits(hak_ctx *heap, const void *p, size_t size)
{
    return size <= HAK_INLINE_EIGHTS && hak_inline_kind(heap, p) == hak_inline_class_of_eights(size / 8);
}

/* A block of the heap's magazines; NULL = there is none, or not of that size. last: 1 below a multiple of 16.
 * Most are small enough for a class that is known without a table. */
HK_PY_INLINE void *hk_py_at_hand(hak_ctx *heap, size_t last, hak_label label, bool labelled)
{
    if (HK_PY_UNLIKELY(last >= HAK_INLINE_EIGHTS)) return NULL;
    /* hak_inline_class_of_eights((last + 1) / 8), of which the compiler does not see that it has no rest */
    size_t at = (last - 7) * (sizeof(hak_inline_bin) / 8);
    hak_inline_bin *bin = (void *)((char *)((hak_inline_ctx *)(void *)heap)->bins + at);
    void **top = bin->top;
    if (HK_PY_UNLIKELY(top <= bin->lo)) return NULL;
    void *p = top[-1];
    if (!p) __builtin_unreachable();
    bin->top = top - 1;
    if (labelled) bin->labels[(uintptr_t)p >> bin->shift] = (uint8_t)label;
    return p;
}

#endif

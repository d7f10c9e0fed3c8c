/* The one context of the process, and how a thread gets at it. */
#ifndef HK_PY_HEAP_H
#define HK_PY_HEAP_H

#include "core.h"

#include <pthread.h>

extern hak_ctx *hk_py_context;
extern pthread_mutex_t hk_py_mutex;

/* The heap for the calls until hk_py_leave. The hooks are installed after the context exists. */
HK_PY_INLINE hak_ctx *hk_py_enter(void)
{
    pthread_mutex_lock(&hk_py_mutex);
    return hk_py_context;
}

HK_PY_INLINE void hk_py_leave(void)
{
    pthread_mutex_unlock(&hk_py_mutex);
}

/* CPython wants every block 16-aligned, which a multiple of 16 is. n is at most PTRDIFF_MAX: CPython
 * refuses more before it calls an allocator. */
HK_PY_INLINE size_t hk_py_round(size_t n)
{
    return n ? (n + 15) & ~(size_t)15 : 16;
}

#endif

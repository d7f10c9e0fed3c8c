/* Decides whether and where a context may allocate: limits, retirement, the heap of the calling thread. */
#ifndef HK_LIMITS_H
#define HK_LIMITS_H

#include "shared/thread_heap.h"

/* Calls the pressure callback if a crossing is pending. First thing on every slow path that allocates. */
HK_COLD void hk_pressure(hak_ctx *ctx);

HK_INLINE bool hk_may_allocate(hak_ctx *ctx)
{
    if (HK_UNLIKELY(hk_pressed(ctx))) hk_pressure(ctx);
    return !ctx->retired;
}

/* Where the calling thread allocates: the context, or its heap of a shared one. NULL = it cannot. */
HK_INLINE hak_ctx *hk_heap_for(hak_ctx *ctx)
{
    if (ctx->role == HK_SHARED) ctx = hk_heap_here(ctx);
    return ctx && hk_may_allocate(ctx) ? ctx : NULL;
}

#endif

/* Frees for hosts that guess the context of a block. */
#include "heap/block.h"
#include "shared/thread_heap.h"

static HK_NOINLINE bool free_if_owned(hak_ctx *ctx, void *p, size_t n)
{
    if (!hk_owns(ctx, p)) return false;
    hak_free_sized(ctx, p, n);
    return true;
}

/* The map of the thread's own heap says whose a unit is and which class it has, so the usual case asks
 * nothing else. */
bool hak_free_if_owned(hak_ctx *ctx, void *p, size_t n)
{
    hak_ctx *heap = ctx;
    if (HK_UNLIKELY(ctx->role == HK_SHARED && !hk_heap_quick(&heap))) return free_if_owned(ctx, p, n);
    const uint32_t kind = hk_kind_in_window(heap, p);
    if (HK_UNLIKELY(kind >= HK_BINS)) return free_if_owned(ctx, p, n);
    hk_bin *bin = &heap->bins[kind];
    void **top = bin->top;
    if (HK_UNLIKELY(top >= bin->hi)) {
        hak_free_sized(ctx, p, n);
        return true;
    }
    *top = p;
    /* The order matters to a child that is forked between the two stores: see shared/thread_heap.h. */
    atomic_signal_fence(memory_order_release);
    bin->top = top + 1;
    return true;
}

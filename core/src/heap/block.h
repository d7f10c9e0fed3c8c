/* Blocks of any kind: which heap owns the memory at an address, and what to do with the block there. The
 * kinds are slabs, runs, packed units and big blocks; this is the one place that tells them apart. */
#ifndef HK_BLOCK_H
#define HK_BLOCK_H

#include "heap/ctx.h"

/* What HAK_DEBUG_POISON fills new and free blocks with. */
enum { HK_POISON_NEW = 0xCD, HK_POISON_FREE = 0xDD };

/* hk_kind_at for a shared context as a whole: *ctx becomes the heap that owns p, both from one look at the
 * map. */
uint32_t hk_find_shared(const hak_ctx **ctx, const void *p, hk_extent **e);
HK_INLINE uint32_t hk_find(const hak_ctx **ctx, const void *p, hk_extent **e)
{
    if (HK_LIKELY(!(*ctx)->role)) return hk_kind_at(*ctx, p, e);
    uint32_t kind = hk_kind_in_window(*ctx, p);
    if (HK_UNLIKELY(kind >= HK_BINS)) return hk_find_shared(ctx, p, e);
    *e = (*ctx)->extent;
    return kind;
}

/* If ctx is shared and owns the memory at p, the heap that does; else ctx. */
HK_INLINE hak_ctx *hk_owner(const hak_ctx *ctx, const void *p)
{
    hk_extent *e;
    if (ctx->role) hk_find_shared(&ctx, p, &e);
    return (hak_ctx *)(uintptr_t)ctx;
}

/* The context or heap that owns the memory at p. NULL = none of the space. */
const hak_ctx *hk_block_owner(const hak_space *space, const void *p);
/* Whether p is in memory of the context, of any of its heaps. */
bool hk_owns(const hak_ctx *ctx, const void *p);

/* Bytes of the live block of ctx that starts at p; 0 = none does. Those in magazines count as live. */
HK_RACY size_t hk_block_size(const hak_ctx *ctx, const void *p);
/* Whether p is in packed memory of the context. */
bool hk_is_packed(const hak_ctx *ctx, const void *p);
/* The label of a live block. */
hak_label hk_label_of_block(const hak_ctx *ctx, const void *p);
/* Gives it another label, wherever it is. The heap of a packed one is locked; if it cannot take the label, it
 * keeps its own. */
void hk_relabel(const hak_ctx *ctx, void *p, hak_label label);

/* Frees a block of a context that the caller may use as it is: a local one, or a heap whose lock is held. n:
 * the size told, or HAK_NONE. */
void hk_block_free(hak_ctx *ctx, void *p, size_t n);
/* The same without magazines, which another thread may be using. false = the slab has moved to another heap.
 */
bool hk_block_put_back(hak_ctx *ctx, void *p);

/* Compares the size told for a live block with what was last asked for (HAK_NONE = none told), and looks at
 * its canary. */
HK_COLD void hk_check_size(const hak_ctx *ctx, const void *p, size_t told);
/* Before a free: checks the size told, poisons the block. */
HK_COLD void hk_check_free(hak_ctx *ctx, void *p, size_t n);

#endif

/* Blocks of any kind: finds the heap that owns the memory at an address, and what is known of the block
 * there. The kinds are slabs, runs, packed units and big blocks; block.c and block_free.c tell them apart. */
#ifndef HK_BLOCK_H
#define HK_BLOCK_H

#include "heap/units.h"

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
enum { HK_KEEP_LABEL = -1 }; /* in place of a label: that of the block */

/* The label that a block which is reallocated has afterwards. p: where it is; live. */
HK_INLINE hak_label hk_label_after(const hak_ctx *ctx, const void *p, int label)
{
    if (label != HK_KEEP_LABEL) return (hak_label)label;
    return ctx->labels.on ? hk_label_of_block(ctx, p) : 0;
}

/* Calls fn for each live block with pages of its own: big blocks, and those before a guard page. false = fn
 * stopped. */
bool hk_alone_visit(const hak_ctx *ctx, hak_visit_fn *fn, void *user);
/* Gives it another label, wherever it is. The heap of a packed one is locked; if it cannot take the label, it
 * keeps its own. */
void hk_relabel(const hak_ctx *ctx, void *p, hak_label label);

#endif

/* With HAK_DEBUG_CHECK, keeps for each block the size that was last asked for. For blocks in units, a tree by
 * the unit's number has the sizes; its leaves have an entry for each 8 bytes of a unit. For big blocks, their
 * record has it. The entry of a freed block stays until another block begins there. The tree takes a quarter
 * more memory, so only this mode has it. */
#ifndef HK_ASKED_H
#define HK_ASKED_H

#include "heap/ctx.h"

/* In place of a size: the block was freed, and waits in quarantine. */
#define HK_HELD (HAK_NONE - 1)

/* Notes the size for a live block of ctx. false = no memory, which cannot happen where a block had a size
 * before; or a part of the tree is missing: then `make` must be set and the shared context locked. */
bool hk_asked_set(hak_ctx *ctx, const void *p, size_t n, bool make);
/* HAK_NONE = ctx never had a block at p, or a big one that is gone. [any thread] */
size_t hk_asked(const hak_ctx *ctx, const void *p);

/* The ring of blocks that HAK_DEBUG_QUARANTINE holds back, of a context with all its heaps, under its lock.
 * Blocks above 32 KiB are not held back: their memory goes back to the space, and an access to it is mostly a
 * fault or another context's. */
enum { HK_HELD_MOST = 256 };
struct hk_quarantine {
    unsigned first, count;
    unsigned leaving; /* blocks that were taken out and are not freed yet: meanwhile none comes in */
    void *blocks[HK_HELD_MOST];
};

#endif

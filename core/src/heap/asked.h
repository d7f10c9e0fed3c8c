/* With HAK_DEBUG_CHECK: the size that was last asked for, of each block. Blocks of units have it in a tree by
 * the unit's number, whose leaves have an entry for each 8 bytes of a unit; big blocks in their record. Of
 * freed blocks it stays until their place is a block again. Takes a quarter more memory: for this mode only.
 */
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

#endif

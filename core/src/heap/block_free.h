/* Frees a block of any kind, with the checks that debug options ask for. */
#ifndef HK_BLOCK_FREE_H
#define HK_BLOCK_FREE_H

#include "heap/ctx.h"

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

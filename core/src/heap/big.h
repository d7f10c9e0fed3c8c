/* Big blocks: above 1 MiB, or smaller blocks that grew, each in a mapping of its own. The heap keeps freed
 * big blocks for a while (big_cache.h). */
#ifndef HK_BIG_H
#define HK_BIG_H

#include "heap/big_map.h"

void *hk_big_alloc(hak_ctx *ctx, size_t align, size_t n, hak_label label, hak_site site, bool *zero);
void hk_big_free(hak_ctx *ctx, hk_big *big);
/* A place for a block of a slab or run that grows to n: in a freed big block, whose rest becomes room; or,
 * for sizes that are not worth copying again, in a mapping of its own. NULL = none. */
void *hk_big_regrow(hak_ctx *ctx, size_t n, hak_label label, hak_site site);
/* Whether a freed one would do. */
bool hk_big_fits(const hak_ctx *ctx, size_t n);
/* In place or by moving the mapping. NULL = cannot; nothing changed. */
void *hk_big_resize(hak_ctx *ctx, hk_big *big, size_t n);
/* Unmaps all big blocks, live ones too, when the context ends. */
void hk_big_destroy(hak_ctx *ctx);

#endif

/* Packed units: small blocks of cold classes side by side, whatever their class, so that a small heap
 * touches few pages. Each unit has a bit for each 8 bytes (a block starts here) and a byte for each 16
 * (the label of the block, or HK_PACKED_FREE); blocks are 16 bytes at least. A class leaves for slabs of
 * its own when it is hot. */
#ifndef HK_PACKED_H
#define HK_PACKED_H

#include "ctx.h"

#define HK_PACKED_FREE 255
#define HK_PACKED_TABLES (256 + 1024) /* bytes of a packed unit that are not blocks */

/* The context's first unit; blocks start behind the context itself. */
void hk_packed_init(hak_ctx *ctx);
enum { HK_PACKED_HOT = 192 /* packed_heat of a class that leaves for slabs, or has left */ };

/* Whether hk_packed_cut() can serve the class: it is cold, has no free blocks, and there is room for one of
 * 16 bytes at least, aligned, and 16 bytes behind it. */
HK_INLINE bool hk_packed_ready(const hak_ctx *ctx, unsigned class)
{
    return ctx->packed_quick && !ctx->pressure && ctx->packed_heat[class] < HK_PACKED_HOT &&
           !ctx->packed_free[class] &&
           (size_t)(ctx->packed_end - ctx->packed_at) >= hk_classes[class].size + 32u;
}
void *hk_packed_cut(hak_ctx *ctx, unsigned class, hak_label label);
/* NULL = the class is hot, or no room: open the class. */
void *hk_packed_alloc(hak_ctx *ctx, unsigned class, hak_label label);
/* From free packed blocks, hot or not, when there is no other memory. NULL = none. */
void *hk_packed_last(hak_ctx *ctx, unsigned class, hak_label label);
void hk_packed_free(hak_ctx *ctx, void *p);
/* Gives back packed units without a live block, and joins free blocks that lie side by side. */
void hk_packed_trim(hak_ctx *ctx);
/* Whether a block, live or free, starts at p. */
bool hk_packed_start(const hak_ctx *ctx, const void *p);
/* Usable size; 0 = not the start of a live block. */
size_t hk_packed_size(const hak_ctx *ctx, const void *p);
uint8_t *hk_packed_label(const hak_ctx *ctx, const void *p);
/* Calls fn for each live block of packed unit number i; false = stopped. */
bool hk_packed_visit(const hak_ctx *ctx, unsigned i, hak_visit_fn *fn, void *user);

#endif

/* The cache of freed big blocks, which stay resident: by call site, so that a site that frees and asks again
 * gets its block back without a system call. The size of the cache depends on what is live, what was missed,
 * and time. */
#ifndef HK_BIG_CACHE_H
#define HK_BIG_CACHE_H

#include "heap/big_map.h"

HK_INLINE void hk_big_list_add(hk_big **list, hk_big *b)
{
    b->prev = NULL;
    b->next = *list;
    if (b->next) b->next->prev = b;
    *list = b;
}

HK_INLINE void hk_big_list_remove(hk_big **list, hk_big *b)
{
    HK_ASSERT(b->prev ? b->prev->next == b : *list == b);
    HK_ASSERT(!b->next || b->next->prev == b);
    if (b->prev) b->prev->next = b->next;
    else *list = b->next;
    if (b->next) b->next->prev = b->prev;
}

/* A record that no block has any more, to use again. */
HK_INLINE void hk_big_record_drop(hak_ctx *ctx, hk_big *b)
{
    b->next = ctx->big.spare;
    ctx->big.spare = b;
}

/* Unmaps a block that is in no list of ctx. */
void hk_big_unmap(hak_ctx *ctx, hk_big *b);
/* Keeps a freed block that is within the limit `keep`; the oldest ones go. */
void hk_cached_put(hak_ctx *ctx, hk_big *b, size_t keep);
/* The caller has it now. */
void hk_cached_take(hak_ctx *ctx, hk_big *b);
/* Takes the block that this call site freed last, else the tightest fit that wastes at most an eighth. NULL =
 * none. */
hk_big *hk_cached_fit(hak_ctx *ctx, size_t align, size_t size, hak_site site);
/* The tightest fit of which at least an eighth is in use, or one that grew to its size. NULL = none. */
hk_big *hk_cached_to_grow(const hak_ctx *ctx, size_t size);
/* The tightest that is up to twice as large, else the largest of the smaller ones. NULL = none. */
hk_big *hk_cached_nearest(const hak_ctx *ctx, size_t size);
/* What is charged for all big blocks of the context, for assertions. */
size_t hk_bigs_charged(const hak_ctx *ctx);
/* Bytes that the cache may hold. */
size_t hk_cached_limit(const hak_ctx *ctx);
/* Lowers the cache's budget by n bytes, but not below `least`. */
void hk_cached_wish_less(hak_ctx *ctx, size_t n, size_t least);
/* A block of this size was given up, in case it is asked for again. */
void hk_cached_missed(hak_ctx *ctx, size_t size);
/* A block of this size, or up to `more` bytes larger, was not there: if one was given up lately, the cache
 * learns. */
void hk_cached_asked(hak_ctx *ctx, size_t size, size_t more);

/* The heap grows by n bytes: the cache shrinks first. Blocks of sizes that are known to be asked for again
 * stay, but above big_cache only while the space is not about to be larger than ever (peak). */
void hk_big_yield(hak_ctx *ctx, size_t n, bool peak);
/* Unmaps all cached blocks and gives up the room of others; returns bytes. */
size_t hk_big_purge(hak_ctx *ctx);
/* The cache gives up what a smaller big_cache does not allow. */
void hk_big_shrink(hak_ctx *ctx);
/* It gives up what was unused for longer than the space's purge_ns, and for longer than that if it was wrong
 * before. */
void hk_big_tick(hak_ctx *ctx, uint64_t now_ns);

#endif

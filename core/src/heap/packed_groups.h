/* Where packed blocks are cut from: regions, which are free blocks or new groups, and groups that go back. */
#ifndef HK_PACKED_GROUPS_H
#define HK_PACKED_GROUPS_H

#include "heap/ctx.h"

/* The context's first unit; blocks start behind the context itself. */
void hk_packed_init(hak_ctx *ctx);
/* Reports that somebody wrote to a free block of the list, and lists all free blocks anew, by the bits. */
HK_COLD void hk_packed_broken(hak_ctx *ctx, unsigned sc);

/* A region for a block of `size` bytes, which may have to be aligned: a free block, or a new group. false =
 * no memory, or the context has its units. */
HK_NOINLINE bool hk_packed_region_next(hak_ctx *ctx, size_t size);
/* The same, a new group. */
bool hk_packed_group_next(hak_ctx *ctx, size_t size);
/* Free blocks side by side become one, and the region is closed, if enough was freed. */
bool hk_packed_join(hak_ctx *ctx);
/* Gives back packed units without a live block, and joins free blocks that lie side by side. Takes a step for
 * each packed block, but none at all where no packed block was freed since the last time. */
void hk_packed_trim(hak_ctx *ctx);
/* The same, and whole pages without a live block go back, too, and are not charged until they are needed. */
void hk_packed_trim_pages(hak_ctx *ctx);
/* Decommits the pages [from, to) of packed units, perhaps none, which become a free block in no list; they stay charged.
 * No region is open. false = the pages of these units do not go back one by one. */
bool hk_packed_leave(hak_ctx *ctx, char *from, char *to);
/* Closes the region, and empties the lists of free blocks, until hk_packed_relist(). */
void hk_packed_unlist(hak_ctx *ctx);
/* Lists all free blocks anew, those side by side as one; no region is open. A step for each free block. */
void hk_packed_relist(hak_ctx *ctx);
/* Does what hk_packed_trim() does if enough bytes were freed to pay for the steps. */
void hk_packed_trim_much(hak_ctx *ctx);
/* The same if as much was freed as a sixteenth of what is live: when few blocks are left, each may hold a
 * group. */
void hk_packed_trim_freed(hak_ctx *ctx);

/* Whether much of what is packed is free. A step for each class. */
bool hk_packed_loose(const hk_packed *k);

#endif

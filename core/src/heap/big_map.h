/* Big blocks of all contexts of a space, by address, under the lock of the space. */
#ifndef HK_BIG_MAP_H
#define HK_BIG_MAP_H

#include "heap/ctx.h"

struct hk_big {
    char *p;
    size_t size; /* of the block; read beside the heap that it belongs to */
    size_t room; /* of the mapping behind it, to grow into; free blocks have none */
    hak_ctx *ctx;
    hak_site site;
    hk_big *next, *prev;   /* in ctx->big.live or .cached, the newest first */
    hk_big *left, *right;  /* in the space's tree by address */
    size_t asked;          /* with HAK_DEBUG_CHECK: see asked.h */
    uint64_t unused_since; /* clock of the tick that first saw it, or its room, unused; 0 = none yet */
    uint8_t label;
    bool grew;          /* it was asked for smaller */
    bool room_purged;   /* the room is neither charged nor resident */
    atomic_bool cached; /* read beside the heap that it belongs to, too */
};

HK_INLINE size_t hk_big_mapped(const hk_big *b)
{
    return b->size + b->room;
}

/* Adds the block to the space's tree; removes it. */
void hk_big_enter(hak_space *space, hk_big *big);
void hk_big_leave(hak_space *space, hk_big *big);
/* The record of the block of ctx that starts at p, cached ones included. NULL = none. */
hk_big *hk_big_find(const hak_ctx *ctx, const void *p);
/* The same of any context of the space. [any thread] */
hk_big *hk_big_at(hak_space *space, const void *p);
/* The context whose live block p lies in. NULL = no block of the space. [any thread] */
hak_ctx *hk_big_owner(hak_space *space, const void *p);
/* Bytes of such blocks, and of their room, from one address to another. [any thread] */
size_t hk_big_bytes_within(hak_space *space, uintptr_t from, uintptr_t to);
/* Unmaps all of them, live ones too, when the space ends. */
void hk_big_unmap_all(hak_space *space);

#endif

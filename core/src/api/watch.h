/* Who looks on while a context allocates and frees: the profile, guard pages, the checks (sizes asked for,
 * canary, poison), quarantine, trace. They hang on four events:
 *
 *   enter     a heap was entered for a new block: magazines are shut or opened if the profile began or ended
 *   new       the block is there: poison, the size asked for, canary, trace; the profile counts it
 *   free      a block is about to be freed: trace, quarantine; guard pages and the profile note who goes
 *   resize    a live block is about to have another size, and has it: trace, size told, canary, profile
 *
 * `debug` of a context tells whether anybody looks on, and `checked` which calls leave the fast paths for
 * it; watched.c has where these go. What the observers keep is behind `watch`, and in `sampling`. */
#ifndef HK_WATCH_H
#define HK_WATCH_H

#include "api/profile.h"
#include "heap/ctx.h"

/* Takes one block of a class that has slabs, past the magazine. NULL = no memory. */
void *hk_check_alloc(hak_ctx *ctx, hk_bin *bin, hak_label label);

/* The caller of any of these holds no lock of the context. heap: a local context, or the calling thread's. */
/* Called between the allocation of a block and hk_watch_new(): the heap of a thread learns of a profile as the
 * allocation enters it, and that block counts. */
HK_INLINE void hk_watch_enter(hak_ctx *heap)
{
    if (HK_UNLIKELY(heap->checked & HK_OBSERVED)) hk_profile_enter(heap);
}

/* n bytes were asked for and p, of `size` bytes, or NULL, is the block. Returns p; or, if there is no memory
 * to note the size, frees p and returns NULL. */
HK_COLD void *hk_watched_new(hak_ctx *heap, void *p, size_t n, size_t size, hak_label label, hak_site site);
HK_INLINE void *hk_watch_new(hak_ctx *heap, void *p, size_t n, size_t size, hak_label label, hak_site site)
{
    return HK_LIKELY(!heap->debug) ? p : hk_watched_new(heap, p, n, size, label, site);
}

/* p may be any pointer; *n is the size told. Returns the block to free in its place, and sets *n to HAK_NONE;
 * NULL = none is to be freed. */
HK_COLD void *hk_watch_free(hak_ctx *ctx, void *p, size_t *n);

/* The block at p is to have n bytes. Returns its usable size; 0 = it is no block: reported, and counts as a
 * failure. */
size_t hk_watch_resize(hak_ctx *ctx, void *p, size_t told, size_t n, int label, hak_site site);
/* It was asked for again, with n bytes. Returns p; NULL = as hk_watch_new(). */
void *hk_watch_again(hak_ctx *ctx, void *p, size_t n);
/* It had `size` bytes and was resized without a copy: it is at q now. */
HK_COLD void *hk_watch_moved(hak_ctx *ctx, const void *p, void *q, size_t size, size_t n, int label,
                             hak_site site);

/* ---- Paths of contexts that are watched (watched.c) ------------------------------------------------ */

/* A block of up to 32 KiB; the bin of sc, which may be that of a batch, has none. Heaps of threads come here, too: they
 * learn of a profile as they are entered. */
HK_NOINLINE void *hk_alloc_watched(hak_ctx *ctx, unsigned sc, size_t n, hak_label label, hak_site site);
/* Frees p, a block of a local context that is checked. */
HK_NOINLINE void hk_free_watched(hak_ctx *ctx, void *p, size_t n);
/* Counts an allocation with an alignment of its own, with HAK_DEBUG_GUARD. NULL = it was not drawn. */
HK_COLD void *hk_guard_aligned(hak_ctx *ctx, size_t align, size_t n, hak_label label, hak_site site);

#endif

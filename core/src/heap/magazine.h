/* The magazine of a bin: recently freed blocks of a class, ready to hand out. A refill takes half a magazine
 * from bitmaps in address order; an overflow gives half of it back. Frees in address order are taken for a
 * collector's sweep: the magazine is emptied and closed to frees for a while, so that the frees set bits, and
 * later allocations get the blocks in address order again. A magazine doubles when it swings between empty
 * and full, and when its class takes a further slab. Magazines hold only blocks of the context's window; runs
 * have magazines, too. */
#ifndef HK_MAGAZINE_H
#define HK_MAGAZINE_H

#include "heap/bins.h"
#include "heap/slab.h"

enum {
    HK_CLOSED_FIRST = 8,      /* log2 of the slow frees after the first sweep */
    HK_MAGAZINE_DEEPEST = 128 /* blocks, which 8 bits count */
};

/* Whether the places of a magazine are as they should be, for assertions. */
HK_INLINE bool hk_bin_sound(const hk_bin *bin)
{
    void **low = hk_bin_low(bin);
    if (!bin->slots) return !bin->top && !bin->hi;
    unsigned room = hk_row_of(bin)->room;
    return bin->slots <= low && low <= bin->top && bin->top <= bin->slots + room && bin->cap <= room &&
           (bin->hi == bin->slots || bin->hi == bin->slots + bin->cap);
}

/* Few pointers, for which a call or a string instruction takes longer than the copy. */
HK_INLINE void hk_blocks_copy(void **to, void *const *from, size_t n)
{
    size_t i = 0;
    for (; i + 4 <= n; i += 4)
        memcpy(to + i, from + i, 4 * sizeof(void *));
    for (; i < n; i++)
        to[i] = from[i];
}

/* Not from an empty one. */
HK_INLINE void *hk_magazine_pop(hk_bin *bin, hak_label label)
{
    void *p = *--bin->top;
    uint8_t *labels = __atomic_load_n(&bin->labels, __ATOMIC_ACQUIRE);
    if (labels) labels[(uintptr_t)p >> bin->shift] = (uint8_t)label;
    return p;
}

/* The bin gets a magazine of `cap` slots, empty, for blocks of this kind. labels: see hk_bin; NULL = the
 * context has none. */
HK_INLINE void hk_magazine_set(const hak_ctx *ctx, hk_bin *bin, void **slots, unsigned cap, unsigned kind,
                               unsigned shift, uint8_t *labels)
{
    bin->slots = bin->top = slots;
    bin->lo = slots;
    if (HK_UNLIKELY(ctx->checked & (HK_PROFILED | HK_GUARDED)))
        bin->lo = ctx->checked & HK_GUARDED ? HK_SHUT_EVER : HK_SHUT;
    bin->hi = slots + cap;
    bin->kind = (uint8_t)kind;
    bin->cap = (uint8_t)cap;
    bin->shift = (uint8_t)shift;
    bin->labels = labels;
    HK_ASSERT(hk_bin_sound(bin));
}

/* How many blocks a refill takes: half a magazine, so that frees find room; a whole one while it is closed to
 * frees. */
HK_INLINE unsigned hk_refill_of(const hk_bin *bin)
{
    unsigned n = bin->closed ? bin->cap : (bin->cap + 1u) / 2;
    return n ? n : 1;
}

/* The magazine has no room for p: flushes it, or closes it for a sweep, and frees p. */
HK_NOINLINE void hk_magazine_overflow(hak_ctx *ctx, hk_bin *bin, void *p);
/* Makes room for one more in a full magazine that stays open. */
void hk_magazine_make_room(hak_ctx *ctx, hk_bin *bin);
/* Enlarges a full magazine if it swings between empty and full. */
void hk_magazine_grow(hak_ctx *ctx, hk_bin *bin);
/* How deep a magazine of the kind may be. In a local context small blocks whose class grew have four times as
 * many as the tuning says, as far as they come to a unit. */
HK_INLINE unsigned hk_magazine_most(const hak_ctx *ctx, unsigned kind)
{
    unsigned cap = ctx->magazines.cap;
    if (ctx->role != HK_LOCAL || kind >= HK_KIB_CLASSES) return cap;
    size_t most = hk_min(hk_min(4 * cap, HK_MAGAZINE_DEEPEST), HK_UNIT / hk_classes[kind].size);
    return (unsigned)hk_max(cap, most);
}
/* Whether magazines of runs may take so many bytes more: all of them together hold at most a 32nd of what is
 * live, and 2 MiB. */
bool hk_run_keep_more(hak_ctx *ctx, size_t more);
/* Enlarges the magazine of a class that takes one more slab. */
void hk_magazine_widen(hak_ctx *ctx, hk_bin *bin);
/* Returns blocks [0, n) of the bin's magazine to their slabs. */
void hk_magazine_flush(hak_ctx *ctx, hk_bin *bin, size_t n);
/* Returns all blocks of the bin's magazine. */
void hk_magazine_empty(hak_ctx *ctx, hk_bin *bin);
/* Empties the magazines of a context of this kind and larger ones. */
void hk_magazines_flush_from(hak_ctx *ctx, unsigned kind);
/* Empties the magazines of packed blocks: each block in one may hold a unit. */
void hk_magazines_flush_packed(hak_ctx *ctx);
/* Called before a local context uses n bytes of fresh pages. Empties magazines that may make these
 * unnecessary: those of runs if n is more than a unit, those of all blocks above 1 KiB near the peak. */
void hk_magazines_yield_now(hak_ctx *ctx, size_t n);
HK_INLINE void hk_magazines_yield(hak_ctx *ctx, size_t n)
{
    if (ctx->magazines.larger_kept && ctx->role == HK_LOCAL) hk_magazines_yield_now(ctx, n);
}
/* Block bytes and blocks in magazines. */
HK_RACY void hk_magazines_sum(const hak_ctx *ctx, size_t *bytes, size_t *blocks);

#endif

#include "heap/magazine.h"

#include "heap/put.h"
#include "heap/row.h"

enum {
    CLOSED_MOST = 15,               /* log2 of slow frees */
    CLOSED_LONGEST = INT16_MAX - 1, /* see hk_packed_push_quick() */
    SWEPT_MOST = 4096               /* bytes of a magazine that a sweep doubles: refills take all of it */
};

void hk_magazine_flush(hak_ctx *ctx, hk_bin *bin, size_t n)
{
    hk_row_end(ctx, bin);
    void **lo = hk_bin_low(bin);
    size_t rest = (size_t)(bin->top - lo) - n;
    HK_ASSERT(hk_bin_sound(bin) && n <= (size_t)(bin->top - lo));
    unsigned kind = bin->kind;
    if (kind < HK_SMALL_CLASSES && hk_packed_keeps(ctx, kind)) {
        for (size_t i = 0; i < n; i++)
            hk_packed_put(ctx, lo[i]);
    } else if (kind < HK_SMALL_CLASSES) {
        size_t done = n - hk_slab_put_all(ctx, kind, lo, lo + n);
        hk_count_out(ctx, done * hk_classes[kind].size, done);
        ctx->account.exchanges++;
    } else {
        for (size_t i = 0; i < n; i++)
            hk_run_give(ctx, lo[i]);
    }
    memmove(bin->slots, lo + n, rest * sizeof(void *));
    hk_bin_lowest(bin);
    bin->top = bin->slots + rest;
    HK_ASSERT(hk_bin_sound(bin));
}

/* Runs of all sizes come and go in a large heap, and a few of them at hand in each class would be a good part of
 * the heap. */
bool hk_run_keep_more(hak_ctx *ctx, size_t more)
{
    enum { LEAST = 2 << 20, LIVE_SHIFT = 5 };
    size_t kept = more, most = LEAST + (hk_get(&ctx->live_bytes) >> LIVE_SHIFT);
    for (unsigned kind = HK_SMALL_CLASSES; kind < HK_BINS; kind++)
        kept += hk_bin_of(ctx, kind)->cap * hk_kind_size(kind);
    return kept <= most;
}

/* Doubles a magazine, as long as all that was added so is not above `room` bytes. */
static void deepen(hak_ctx *ctx, hk_bin *bin, unsigned most, size_t room)
{
    most = (unsigned)hk_min(most, HK_MAGAZINE_DEEPEST);
    if (bin->cap * 2u > most) return;
    size_t more = bin->cap * hk_kind_size(bin->kind);
    if (ctx->magazines.grown + more > room) return;
    if (bin->kind >= HK_SMALL_CLASSES && !hk_run_keep_more(ctx, more)) return;
    bool was = hk_row_of(bin)->room >= bin->cap * 2u; /* so deep, once, or made for it: old slots are lost */
    void **slots = was ? bin->slots : hk_row_slots(ctx, bin->kind, (unsigned)hk_min(most, bin->cap * 4u));
    if (!slots) return;
    ctx->magazines.grown += (uint32_t)more;
    if (was) {
        bin->cap = (uint8_t)(bin->cap * 2);
        bin->hi = bin->slots + bin->cap;
        HK_ASSERT(hk_bin_sound(bin));
        return;
    }
    size_t n = (size_t)(bin->top - hk_bin_low(bin));
    memcpy(slots, hk_bin_low(bin), n * sizeof(void *));
    bin->cap = (uint8_t)(bin->cap * 2);
    bin->slots = slots;
    hk_bin_lowest(bin);
    bin->top = slots + n;
    bin->hi = slots + bin->cap;
    HK_ASSERT(hk_bin_sound(bin));
}

/* In the heap of a thread magazines grow at once, by as much as is live, for two reasons: a free for which a
 * magazine has no room takes a lock; and a class of larger blocks whose number rises and falls then keeps to
 * the pages that it has touched, while units that move between classes touch all of theirs. Ticks empty those
 * magazines. In a local context they grow seldom; in a large one by a part of what is live, as they would go
 * on to grow for hours. */
void hk_magazine_grow(hak_ctx *ctx, hk_bin *bin)
{
    enum { SWINGS = 24 };
    const size_t MiB = (size_t)1 << 20;
    bool shared = ctx->role == HK_HEAP;
    size_t live = hk_get(&ctx->live_bytes);
    if (!(bin->swings & HK_EMPTIED)) return;
    bin->swings = (uint8_t)((bin->swings & ~HK_EMPTIED) + 1);
    if (bin->swings < SWINGS && !shared) return;
    bin->swings = 0;
    deepen(ctx, bin, ctx->magazines.cap, shared ? live + 2 * MiB : hk_min(live, live / 16 + 6 * MiB) + MiB);
}

/* What a growing class hands out comes from refills, and larger ones are fewer. All that such classes get is
 * a part of what is live: what is at hand when the heap shrinks holds slabs. Under a small limit, and near a
 * larger one, memory counts more, and each refusal empties magazines. */
void hk_magazine_widen(hak_ctx *ctx, hk_bin *bin)
{
    enum { LIVE_SHIFT = 5, BYTES_MOST = 4 * HK_UNIT, LIMIT_SMALL = 64 << 20 };
    unsigned most = hk_magazine_most(ctx, bin->kind), cap = bin->cap * 2u;
    if (ctx->role || ctx->checked & ~(HK_PROFILED | HK_OBSERVED) || bin->closed || !cap || cap > most) return;
    if (cap * hk_kind_size(bin->kind) > BYTES_MOST) return;
    size_t hard = hk_hard_least(ctx);
    if ((hard && hard < LIMIT_SMALL) || hk_packed_scarce(ctx)) return;
    hk_row_end(ctx, bin);
    deepen(ctx, bin, most, hk_get(&ctx->live_bytes) >> LIVE_SHIFT);
}

/* A garbage collector's sweep frees in address order, up or down. Its blocks should come out of bitmaps, in
 * address order, and not last in, first out: the program would walk the heap against its layout ever
 * after. */
static bool is_sweep(void **from, void **to)
{
    unsigned up = 0, down = 0;
    for (; from + 1 < to; from++) {
        if (from[1] > from[0]) up++;
        else down++;
    }
    unsigned most = up > down ? up : down;
    return most * 5 >= (up + down) * 4;
}

/* The magazine is closed, for a sweep or for good. */
HK_INLINE bool closed(const hk_bin *bin)
{
    return bin->closed || bin->cap == 0;
}

HK_INLINE void pass_by(hak_ctx *ctx, hk_bin *bin, void *p)
{
    if (bin->closed && --bin->closed == 0) bin->hi = bin->slots + bin->cap;
    hk_slab_put_back(ctx, ctx->extent, bin->kind, p);
}

/* A refill that found few blocks leaves room below them. It is used before anything is flushed. */
static bool move_down(hk_bin *bin)
{
    if (hk_bin_low(bin) == bin->slots) return false;
    size_t n = (size_t)(bin->top - bin->lo);
    memmove(bin->slots, bin->lo, n * sizeof(void *));
    bin->lo = bin->slots;
    bin->top = bin->slots + n;
    return true;
}

void hk_magazine_make_room(hak_ctx *ctx, hk_bin *bin)
{
    HK_ASSERT(hk_bin_sound(bin));
    if (move_down(bin)) return;
    hk_magazine_grow(ctx, bin);
    if (bin->top == bin->hi) hk_magazine_flush(ctx, bin, ((size_t)(bin->top - hk_bin_low(bin)) + 1) / 2);
}

static HK_NOINLINE void overflow(hak_ctx *ctx, hk_bin *bin, void *p)
{
    size_t n = (size_t)(bin->top - hk_bin_low(bin));
    HK_ASSERT(hk_bin_sound(bin) && bin->cap > 0);
    if (move_down(bin)) {
        *bin->top++ = p;
        return;
    }
    if (n >= 16 && !ctx->magazines.no_sweeps && is_sweep(bin->top - n / 2, bin->top)) {
        hk_magazine_flush(ctx, bin, n);
        if (bin->cap * hk_kind_size(bin->kind) <= SWEPT_MOST)
            deepen(ctx, bin, ctx->magazines.cap * 2u, hk_get(&ctx->live_bytes));
        bin->closed = (uint16_t)hk_min(1u << bin->backoff, CLOSED_LONGEST);
        if (bin->backoff < CLOSED_MOST) bin->backoff++;
        bin->hi = bin->slots;
        hk_slab_put_found(ctx, ctx->extent, bin->kind, p);
        return;
    }
    bin->backoff = HK_CLOSED_FIRST;
    hk_magazine_make_room(ctx, bin);
    *bin->top++ = p;
}

void hk_magazine_overflow(hak_ctx *ctx, hk_bin *bin, void *p)
{
    if (bin->closed && bin->kind < HK_KIB_CLASSES && !ctx->role) hk_row_next(ctx, bin, p);
    else if (closed(bin)) pass_by(ctx, bin, p);
    else overflow(ctx, bin, p);
}

void hk_magazine_empty(hak_ctx *ctx, hk_bin *bin)
{
    size_t n = (size_t)(bin->top - hk_bin_low(bin));
    if (n) hk_magazine_flush(ctx, bin, n);
}

void hk_magazines_flush_from(hak_ctx *ctx, unsigned kind)
{
    for (; kind < HK_BINS; kind++)
        hk_magazine_empty(ctx, hk_bin_of(ctx, kind));
}

void hk_magazines_flush_packed(hak_ctx *ctx)
{
    for (unsigned sc = 0; sc < HK_SMALL_CLASSES; sc++)
        if (hk_packed_keeps(ctx, sc)) hk_magazine_empty(ctx, hk_bin_of(ctx, sc));
}

void hk_magazines_yield_now(hak_ctx *ctx, size_t n)
{
    if (hk_space_peaks(ctx->space, n + hk_get(&ctx->space->high) / 16))
        hk_magazines_flush_from(ctx, HK_KIB_CLASSES);
    else if (n > HK_UNIT) hk_magazines_flush_from(ctx, HK_SMALL_CLASSES);
}

void hk_magazines_sum(const hak_ctx *ctx, size_t *bytes, size_t *blocks)
{
    *bytes = *blocks = 0;
    unsigned all = hk_bins_all(ctx);
    const hk_bin *bins = ctx->bins;
    if (hk_bins_none(ctx)) return;
    for (unsigned i = 0; i < all; i++) {
        const hk_bin *bin = &bins[i];
        size_t n = (size_t)(bin->top - hk_bin_low(bin));
        /* Another thread's magazine, seen between two stores. */
        if (HK_UNLIKELY(n > UINT8_MAX)) n = 0;
        *bytes += n * hk_kind_size(i < HK_BINS ? i : i - HK_BINS);
        *blocks += n;
    }
}

#include "heap/refill.h"

#include "heap/reclaim.h"
#include "heap/row.h"

bool hk_class_open(hak_ctx *ctx, unsigned sc)
{
    if (!hk_bins_make(ctx)) return false;
    hk_bin *bin = hk_bin_of(ctx, sc);
    const hk_class *c = &hk_classes[sc];
    unsigned cap = hk_slab_returns(ctx, sc) ? 0 : (unsigned)hk_min(c->magazine, ctx->magazines.cap);
    /* One slot at least, for refills. */
    void **slots = hk_row_slots(ctx, sc, cap ? cap : 1);
    if (!slots) return false;
    if (hk_packed_keeps(ctx, sc)) {
        hk_magazine_empty(ctx, bin);
        ctx->packed.kept[sc / 64] &= ~(UINT64_C(1) << (sc % 64));
    }
    ctx->packed.open++;
    ctx->packed.heat[sc] = HK_PACKED_LEFT;
    hk_magazine_set(ctx, bin, slots, cap, sc, c->shift, hk_labels_of(ctx, c->area));
    bin->backoff = HK_CLOSED_FIRST;
    bin->closed = 0;
    if (sc >= HK_KIB_CLASSES) ctx->magazines.larger_kept = true;
    return true;
}

/* The slab becomes the bin's current one. */
static void slab_use(hak_ctx *ctx, hk_bin *bin, hk_slab *s)
{
    HK_ASSERT(s->kind == bin->kind && s->used < hk_slab_capacity(ctx, s) && s->head == 0);
    s->cursor = 0;
    s->trigger = hk_slab_returns(ctx, bin->kind) ? 0 : HK_TRIGGER_NEVER;
    bin->slab = s;
}

/* Keep unused slab space small relative to the heap: units of freed blocks are resident whether they are used
 * or not. */
static size_t units_of(const hak_ctx *ctx, const hk_class *c)
{
    enum { PART_SHIFT = 6 };
    return hk_get(&ctx->account.committed) >> (HK_UNIT_SHIFT + PART_SHIFT) >= c->units ? c->units : c->few;
}

/* A larger block that was never handed out does not count as free: its pages are untouched. */
bool hk_class_has_free(const hak_ctx *ctx, const hk_bin *bin)
{
    if (bin->top != hk_bin_low(bin) || bin->first) return true;
    const hk_slab *s = bin->slab;
    return s && s->used < (bin->kind < HK_KIB_CLASSES ? hk_slab_capacity(ctx, s) : s->fresh);
}

static bool slab_next(hak_ctx *ctx, hk_bin *bin)
{
    hk_slab *old = bin->slab;
    if (old) {
        unsigned most = hk_slab_capacity(ctx, old);
        HK_ASSERT(old->used <= most && old->fresh <= most);
        if (old->used == most) old->trigger = (uint16_t)(most - 1);
        else if (old->used > 0) hk_slab_list(ctx, bin, old);
        else return old->cursor = 0, true; /* freed behind the cursor: only partial slabs may be listed */
        bin->slab = NULL;
    }
    if (bin->first) {
        hk_slab *s = hk_slab_at(ctx->space, bin->first);
        hk_slab_unlist(ctx, bin, s);
        slab_use(ctx, bin, s);
        return true;
    }
    if (HK_UNLIKELY(ctx->role) && (old = ctx->member->steal(ctx, bin->kind))) {
        slab_use(ctx, bin, old);
        return true;
    }
    bool zero;
    /* Most classes never fill their first slab. Of recycled units it would be resident as a whole, so it
     * takes fresh ones; a young context takes recycled units all the same. */
    bool once = bin->heat == 0 && ctx->account.shrank && !hk_slab_returns(ctx, bin->kind);
    hk_want want = once ? HK_WANT_CLEAN : HK_WANT_DIRTY;
    const hk_class *c = &hk_classes[bin->kind];
    size_t units = units_of(ctx, c);
    hk_slab *s = hk_units_take_as(ctx, units, bin->kind, want, &zero);
    /* The units that are left may be apart from each other. */
    if (HK_UNLIKELY(!s) && units > c->few) s = hk_units_take_as(ctx, c->few, bin->kind, want, &zero);
    if (!s) return false;
    s->fresh = 0;
    slab_use(ctx, bin, s);
    if (bin->heat) hk_magazine_widen(ctx, bin);
    /* A class that has so many slabs will fill one more, unless it prefers to borrow. */
    bool fills = ctx->role == HK_LOCAL || bin->kind < HK_KIB_CLASSES;
    /* The heat of a class counts its slabs, less those that went back. */
    if (bin->heat < hk_min(ctx->populate_from, HK_POPULATE_NEVER - 1)) bin->heat++;
    else if (zero && fills && ctx->populate_from != HK_POPULATE_NEVER)
        hk_space_populate(ctx->space, hk_slab_id(ctx->space, s), s->units);
    return true;
}

unsigned hk_class_wider(hak_ctx *ctx, unsigned sc)
{
    bool aligned = hk_classes[sc].size % 16 == 0;
    for (unsigned c = sc + 1; c < HK_SMALL_CLASSES; c++) {
        const hk_bin *bin = hk_bin_of(ctx, c);
        if ((aligned && hk_classes[c].size % 16) || hk_packed_keeps(ctx, c)) continue;
        if (hk_class_has_free(ctx, bin) || (bin->slab && bin->slab->used < hk_slab_capacity(ctx, bin->slab)))
            return c;
    }
    return HK_SMALL_CLASSES;
}

/* Pages that trim gave back are about to be used again. */
static bool commit_again(hak_ctx *ctx, hk_extent *e, hk_slab *s)
{
    if (e->owned && hk_space_commit(ctx->space, hk_slab_start(e, s), (size_t)s->units << HK_UNIT_SHIFT) != 0)
        return false;
    hk_sub(&ctx->account.released, hk_slab_released(s));
    s->released = 0;
    return true;
}

typedef uintptr_t hk_pair __attribute__((vector_size(2 * sizeof(uintptr_t))));

/* Pops come in ascending order: slots are filled from the end down. n blocks that lie side by side, two a
 * store. */
HK_INLINE void **fill_row(void **at, char *p, size_t size, unsigned n)
{
    if (n & 1) {
        *--at = p;
        p += size;
    }
    hk_pair two = {(uintptr_t)p + size, (uintptr_t)p}, step = {2 * size, 2 * size};
    if (n & 2) {
        at -= 2;
        memcpy(at, &two, sizeof two);
        two += step;
    }
    for (n /= 4; n; n--) {
        at -= 4;
        memcpy(at + 2, &two, sizeof two);
        two += step;
        memcpy(at, &two, sizeof two);
        two += step;
    }
    return at;
}

/* Of the blocks of a word that are free, up to end; the others stay in it. */
HK_INLINE void **fill_word(void **at, void **end, char *first, size_t size, uint64_t *word)
{
    uint64_t w = *word;
    bool rows = w & w >> 1 & w >> 2 & w >> 3;
    do {
        unsigned i = (unsigned)__builtin_ctzll(w), n = 1;
        if (rows) {
            uint64_t above = ~w >> i;
            n = above ? (unsigned)__builtin_ctzll(above) : 64 - i;
            n = (unsigned)hk_min(n, (size_t)(at - end));
            at = fill_row(at, first + i * size, size, n);
            w = w >> i >> (n - 1) >> 1 << (n - 1) << 1 << i;
        } else {
            *--at = first + i * size;
            w &= w - 1;
        }
    } while (w && at > end);
    *word = w;
    return at;
}

/* Fills the empty magazine from the current slab, which is in this extent. false = there is none. */
static HK_NOINLINE bool fill(hak_ctx *ctx, const hk_extent *e, hk_bin *bin, unsigned want)
{
    hk_slab *s = bin->slab;
    char *start = hk_slab_first(ctx, e, s);
    uint64_t *bits = hk_slab_bits(e, s);
    size_t size = hk_classes[bin->kind].size;
    unsigned words = ((unsigned)s->fresh + 63) / 64, k = s->cursor;
    void **end = bin->slots, **to = end + want, **at = to;
    HK_ASSERT(want > 0 && want <= hk_row_of(bin)->room && s->kind == bin->kind);
    for (; k < words; k++) {
        if (!bits[k]) continue;
        at = fill_word(at, end, start + k * 64 * size, size, &bits[k]);
        if (at == end) break;
    }
    /* Blocks at hand of a class of larger blocks keep it from borrowing. */
    if (HK_UNLIKELY(ctx->role == HK_HEAP) && bin->kind >= HK_KIB_CLASSES && at != end) want = at == to;
    else want = (unsigned)(at - end);
    if (want) {
        unsigned fresh = s->fresh, n = (unsigned)hk_min(want, hk_slab_capacity(ctx, s) - fresh);
        if (n) {
            at = fill_row(at, start + fresh * size, size, n);
            s->fresh = (uint16_t)(fresh + n);
            k = (fresh + n - 1) / 64;
        }
    }
    s->cursor = (uint8_t)k;
    if (at == to) return false;
    size_t n = (size_t)(to - at);
    s->used = (uint16_t)(s->used + n);
    HK_ASSERT(at >= end && s->used <= s->fresh && s->fresh <= hk_slab_capacity(ctx, s));
    if (ctx->magazines.swept) hk_row_taken(ctx, hk_row_of(bin), s);
    else ctx->account.exchanges++; /* of magazines that a sweep empties, deeper ones save no fills */
    bin->lo = at;
    bin->top = to;
    bin->swings |= HK_EMPTIED;
    hk_count_in(ctx, n * size, n);
    return true;
}

bool hk_slab_refill_here(hak_ctx *ctx, hk_bin *bin, unsigned want)
{
    const hk_slab *s = bin->slab;
    size_t unit = hk_extent_unit(ctx->extent, s);
    if (HK_UNLIKELY(unit >= ctx->units || s->released)) return false;
    if (ctx->magazines.swept && hk_row_unit(ctx, hk_row_of(bin)) == unit) hk_row_settle(ctx, bin);
    return fill(ctx, ctx->extent, bin, want);
}

bool hk_slab_refill(hak_ctx *ctx, hk_bin *bin, unsigned want)
{
    hk_row_settle(ctx, bin);
    do {
        hk_slab *s = bin->slab;
        if (!s) continue;
        hk_extent *e = hk_extent_of_slab(ctx->space, s);
        if (HK_UNLIKELY(s->released) && !commit_again(ctx, e, s)) return false;
        /* Blocks outside the window stay out of magazines: one at a time, for the caller. */
        if (fill(ctx, e, bin, HK_LIKELY(e == ctx->extent) ? want : 1)) return true;
    } while (slab_next(ctx, bin));
    return false;
}

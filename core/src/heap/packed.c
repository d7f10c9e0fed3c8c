/* Packed blocks: how they are handed out, what is known of one, and when their class leaves for slabs. */
#include "heap/packed.h"

#include "heap/judge.h"
#include "heap/label.h"
#include "heap/packed_group.h"
#include "heap/packed_large.h"
#include "heap/refill.h"
#include "heap/row.h"

enum {
    FREED = 3,                /* heat of a free */
    KEEP_LEAST = 24 * HK_UNIT /* a smaller limit has no room for magazines, nor for slabs of classes */
};

/* ---- Allocation ----------------------------------------------------------------------------------- */

static void warm_up(hak_ctx *ctx, unsigned sc, unsigned by)
{
    uint8_t *heat = &ctx->packed.heat[sc];
    if (*heat >= HK_PACKED_HOT) return;
    *heat = (uint8_t)(*heat + by);
}

/* Whether a block of the class can have the label. */
HK_INLINE bool label_fits(const hak_ctx *ctx, unsigned sc, hak_label label)
{
    return HK_LIKELY(label <= HK_HALF_MOST || sc >= HK_TWO_HALVES_CLASS) || !ctx->labels.on;
}

void *hk_packed_again(hak_ctx *ctx, unsigned sc, hak_label label)
{
    hk_free_block b;
    if (HK_UNLIKELY(!label_fits(ctx, sc, label))) return NULL;
    if (HK_UNLIKELY(!hk_packed_first(ctx, sc, &b))) {
        hk_packed_broken(ctx, sc);
        return NULL;
    }
    /* One with a rest of 8 bytes is of the next class. */
    if ((uintptr_t)b.p & ~(hk_classes[sc].size & b.size) & 8) return NULL;
    hk_packed_pop(ctx, sc, b.p);
    hk_bit_clear(hk_group_frees(b.group), (size_t)(b.p - b.group.start) >> 4);
    if (ctx->labels.on) hk_packed_label_set(b.extent, b.p, b.size, (uint8_t)label);
    hk_packed_count_in(ctx, b.size == hk_classes[sc].size ? sc : hk_class_of(b.size), b.size);
    return b.p;
}

/* Bytes to leave out so that a block of that size is aligned: to 16 if the size is a multiple of 16. */
HK_INLINE size_t skip_of(const char *at, size_t size)
{
    return (uintptr_t)at & ~size & 8;
}

/* Cuts a block from the region, which has room for it. If the block is aligned up, 8 bytes before it stay
 * free. e: the region's extent; NULL = the context has no labels. */
HK_INLINE void *cut(hak_ctx *ctx, unsigned sc, size_t size, size_t skip, hak_label label, const hk_extent *e)
{
    hk_packed *k = &ctx->packed;
    char *p = k->at;
    if (skip) {
        hk_bit_set(k->frees, (size_t)(p - k->group) >> 4);
        p += 8;
        hk_start_mark(k->starts, p);
    }
    k->at = p + size;
    hk_start_mark(k->starts, k->at);
    if (e) hk_packed_label_set(e, p, size, (uint8_t)label);
    hk_packed_count_in(ctx, sc, size);
    return p;
}

/* The end of the region: a rest of 8 bytes would share its free bit with the block behind it, so the block
 * takes it, or begins 8 bytes later where the longer one would not be aligned as blocks of its size are. NULL
 * = the region is too small. */
static void *cut_last(hak_ctx *ctx, unsigned sc, hak_label label)
{
    size_t size = hk_classes[sc].size, room = (size_t)(ctx->packed.end - ctx->packed.at),
           skip = skip_of(ctx->packed.at, size);
    if (size + skip > room) return NULL;
    if (room - skip - size == 8) {
        if (skip_of(ctx->packed.at + skip, size + 8)) skip += 8;
        else sc = hk_class_of(size += 8);
    }
    return cut(ctx, sc, size, skip, label, ctx->labels.on ? hk_packed_extent(ctx, ctx->packed.at) : NULL);
}

/* Blocks are 16 bytes at least: class 0 has none. A label may need a larger one. */
HK_INLINE unsigned packed_class(const hak_ctx *ctx, unsigned sc, hak_label label)
{
    if (HK_UNLIKELY(!label_fits(ctx, sc, label))) return HK_TWO_HALVES_CLASS;
    return sc ? sc : 1;
}

HK_INLINE void *cut_first(hak_ctx *ctx, unsigned sc, hak_label label, const hk_extent *e)
{
    size_t size = hk_classes[sc].size;
    return cut(ctx, sc, size, skip_of(ctx->packed.at, size), label, e);
}

void *hk_packed_take(hak_ctx *ctx, hk_bin *bin, hak_label label)
{
    void *p = *--bin->top;
    hk_halves_set(ctx->extent->labels[HK_AREA_PACKED], p, bin->kind >= HK_TWO_HALVES_CLASS, (uint8_t)label);
    return p;
}

/* Magazines of the smallest classes are shut, because they cannot write the labels of their blocks. */
static HK_NOINLINE void *cut_halves(hak_ctx *ctx, unsigned sc, hak_label label)
{
    hk_bin *bin = hk_bin_of(ctx, sc);
    if (hk_packed_at_hand(bin, label)) return hk_packed_take(ctx, bin, label);
    return cut_first(ctx, packed_class(ctx, sc, label), label, hk_packed_extent(ctx, ctx->packed.at));
}

static HK_NOINLINE void *cut_labelled(hak_ctx *ctx, unsigned sc, hak_label label)
{
    bool plain = sc >= HK_HALVES_CLASS && hk_in_window(ctx, ctx->packed.at);
    return HK_LIKELY(plain) ? cut_first(ctx, sc, label, ctx->extent) : cut_halves(ctx, sc, label);
}

/* Calls come last: it needs no stack then. */
void *hk_packed_cut(hak_ctx *ctx, unsigned sc, hak_label label)
{
    if (ctx->labels.on) return cut_labelled(ctx, sc, label);
    return cut_first(ctx, sc ? sc : 1, label, NULL);
}

/* A heap that outgrew its packed units should not keep them. Empty units go back when three quarters of the
 * blocks are gone, and with the last block. */
static void *count_new(hak_ctx *ctx, void *p)
{
    if (HK_LIKELY(ctx->role != HK_HEAP) || !p) return p;
    hk_packed *k = &ctx->packed;
    if (++k->blocks > k->blocks_most) k->blocks_most = k->blocks;
    /* Where blocks only go, magazines would hold the units. */
    if (k->freed && k->listed < HK_PACKED_PAID) k->listed++;
    return p;
}

static void uncount(hak_ctx *ctx)
{
    hk_packed *k = &ctx->packed;
    if (--k->blocks > k->blocks_most / 4 || k->units == 1) return;
    k->blocks_most = k->blocks;
    hk_packed_trim(ctx);
}

static void *alloc(hak_ctx *ctx, unsigned sc, size_t n, hak_label label)
{
    if (n > 1024 && ctx->role == HK_LOCAL) return hk_packed_large(ctx, n, label);
    size_t size = hk_classes[sc].size;
    if (ctx->packed.free[sc]) {
        void *again = hk_packed_again(ctx, sc, label);
        if (again) return again;
    }
    do {
        void *p = cut_last(ctx, sc, label);
        if (p) return p;
    } while (hk_packed_region_next(ctx, size));
    return NULL;
}

/* Groups in heaps of threads are too small for the largest classes. */
static bool fits(const hak_ctx *ctx, unsigned sc)
{
    return sc < HK_PACKED_CLASSES || ctx->role == HK_LOCAL;
}

void *hk_packed_last(hak_ctx *ctx, unsigned sc, size_t n, hak_label label)
{
    sc = packed_class(ctx, sc, label);
    bool able = ctx->packed.units && fits(ctx, sc) && ctx->packed.live[sc] < UINT16_MAX / 2;
    return able ? count_new(ctx, alloc(ctx, sc, n, label)) : NULL;
}

/* A class's first slab takes whole units, and the bins may take one: the rest of a limit does more as packed pages. */
bool hk_packed_has_rest(const hak_ctx *ctx)
{
    return ctx->packed.units && hk_packed_limited(ctx) && hk_packed_scarce(ctx);
}

HK_NOINLINE void *hk_packed_beside_slabs(hak_ctx *ctx, unsigned sc, size_t n, hak_label label)
{
    size_t hard;
    bool few = hk_account_room(ctx, &hard) < (size_t)ctx->packed.open << HK_UNIT_SHIFT;
    /* Classes that left took their blocks along, and the holes that these left hold units for nothing. */
    if (!few) few = hk_packed_limited(ctx) && hk_packed_loose(&ctx->packed);
    return few ? hk_packed_last(ctx, sc, n, label) : NULL;
}

/* Whether the limit has no room for bins. */
static bool has_little(const hak_ctx *ctx)
{
    size_t hard = hk_hard_least(ctx);
    return hard && hard < KEEP_LEAST;
}

/* Serves a class that should have slabs. The first slab of a context takes a unit for bins, too. */
static HK_NOINLINE void *alloc_scarce(hak_ctx *ctx, unsigned sc, size_t n, hak_label label)
{
    bool stays = hk_packed_scarce(ctx) || (has_little(ctx) && hk_bins_none(ctx));
    return stays ? hk_packed_last(ctx, sc, n, label) : NULL;
}

void *hk_packed_alloc(hak_ctx *ctx, unsigned sc, size_t n, hak_label label)
{
    sc = packed_class(ctx, sc, label);
    const hk_packed *k = &ctx->packed;
    if (k->units == 0 || !fits(ctx, sc)) return NULL;
    hk_bin *bin = hk_bin_of(ctx, sc);
    /* packed_class() may have moved sc to a class that left for slabs, and guard pages shut the magazines of
     * slabs too. So a shut magazine does not prove that its blocks are packed. */
    if (HK_UNLIKELY(hk_packed_at_hand(bin, label)) && hk_packed_keeps(ctx, sc))
        return hk_packed_take(ctx, bin, label);
    unsigned hot = ctx->role == HK_LOCAL ? HK_PACKED_LEFT : HK_PACKED_HOT;
    if (k->live[sc] >= hk_packed_full(sc) || k->heat[sc] >= hot) return alloc_scarce(ctx, sc, n, label);
    /* What passes through the magazine of its class has the class's size. */
    if (hk_packed_keeps(ctx, sc)) n = 0;
    return count_new(ctx, alloc(ctx, sc, n, label));
}

/* ---- Blocks --------------------------------------------------------------------------------------- */

bool hk_packed_start(const hak_ctx *ctx, const void *p)
{
    hk_group g = hk_group_of(ctx, p);
    return hk_group_is_start(g, (size_t)((const char *)p - g.start)) && !hk_packed_is_region(ctx, p);
}

size_t hk_packed_size(const hak_ctx *ctx, const void *p)
{
    hk_group g = hk_group_of(ctx, p);
    /* A thread that holds a block of another thread's heap: the region may be moving, and does not begin
     * there. */
    return HK_LIKELY(ctx->role != HK_HEAP) ? hk_packed_size_in(ctx, g, p) : hk_packed_size_marked(g, p);
}

HK_INLINE void put(hak_ctx *ctx, hk_group g, char *p, unsigned sc, size_t size)
{
    hk_packed_put_in(ctx, g, p, sc, size);
    if (HK_UNLIKELY(ctx->role == HK_HEAP)) uncount(ctx);
    else if (ctx->packed.listed < HK_PACKED_PAID) ctx->packed.listed++;
}

/* Blocks of slabs are freed faster, but each class with pages of its own wastes some. Under a limit, only a
 * sixteenth of the limit is for classes that leave for speed. */
static bool may_leave(hak_ctx *ctx)
{
    size_t hard = hk_hard_least(ctx);
    return !hard || (hard >= KEEP_LEAST && ctx->packed.left < hard / (16 * HK_UNIT));
}

void hk_packed_skip(hak_ctx *ctx, size_t sizes)
{
    for (; sizes; sizes &= sizes - 1) {
        uint8_t *heat = &ctx->packed.heat[hk_class_of(8 * ((unsigned)__builtin_ctzll(sizes) + 1))];
        if (*heat == HK_PACKED_LEFT) continue;
        *heat = HK_PACKED_LEFT;
        ctx->packed.left++;
    }
}

/* Whether so many blocks of the class, which has no slabs, were freed. */
static bool comes_and_goes(const hak_ctx *ctx, unsigned sc)
{
    if (ctx->packed.heat[sc] >= HK_PACKED_HOT) return true;
    return hk_packed_keeps(ctx, sc) && ctx->bins[sc].closed >= HK_KEPT_FIRST + HK_PACKED_HOT / FREED;
}

size_t hk_packed_sizes(const hak_ctx *ctx, bool hot)
{
    size_t sizes = 0;
    if (!ctx->packed.units && (hot || !ctx->packed.most)) return 0;
    /* Classes are 8 bytes apart there. */
    for (unsigned sc = 0; sc < HK_SLAB_SIZES; sc++) {
        bool left = ctx->packed.heat[sc] == HK_PACKED_LEFT;
        if (hot) left = left ? ctx->bins[sc].slots != NULL : comes_and_goes(ctx, sc);
        sizes |= (size_t)left << sc;
    }
    return sizes;
}

/* The class has slabs from now on. One without blocks has them with its first one, for which nothing is done
 * here. */
static bool leave(hak_ctx *ctx, unsigned sc)
{
    if (ctx->packed.live[sc]) return hk_class_open(ctx, sc);
    ctx->packed.heat[sc] = HK_PACKED_LEFT;
    return true;
}

/* When the allowance shrinks, every class moves to slabs at once: a class that stayed would reuse its freed
 * packed blocks for ever, and their units would never drain. */
void hk_packed_limit(hak_ctx *ctx, size_t bytes)
{
    hk_packed *k = &ctx->packed;
    uint16_t most = (uint16_t)((bytes + HK_UNIT - 1) >> HK_UNIT_SHIFT);
    if (!k->units || k->most == most) return;
    k->most = most;
    bool less = k->units > k->most;
    for (unsigned sc = 0; sc < HK_SMALL_CLASSES && !ctx->retired; sc++) {
        bool left = k->heat[sc] == HK_PACKED_LEFT;
        if (less && !left && may_leave(ctx) && leave(ctx, sc)) k->left++;
        if (less || !left || hk_bin_of(ctx, sc)->slots) continue;
        k->heat[sc] = 0;
        k->left--;
    }
}

/* Whether a block can be in its class's magazine. */
HK_INLINE bool is_regular(const hak_ctx *ctx, unsigned sc, const char *p, size_t size)
{
    return size == hk_classes[sc].size && hk_in_window(ctx, p);
}

/* Whether a heap of a shared context may keep blocks of the class at hand. Its wide classes are seldom asked for the
 * others. */
HK_INLINE bool heap_keeps(const hak_ctx *ctx, unsigned sc)
{
    return sc >= HK_KIB_CLASSES || hk_class_in(ctx, hk_classes[sc].size) == sc;
}

/* How many blocks of the class may be at hand, 0 = none: whether magazines are worth their memory by now, and the limit
 * allows them. Where it is small only a class whose blocks come and go gets one, and all are so short that they fit
 * behind the bins, in the context's own unit. */
HK_INLINE unsigned kept_most(const hak_ctx *ctx, unsigned sc)
{
    enum { SMALL = 64 * HK_UNIT, SLOTS = 8 };
    if (ctx->packed.listed < HK_PACKED_PAID || (ctx->role && !heap_keeps(ctx, sc))) return 0;
    /* All magazines of these are shut, which says of one of packed blocks that it cannot write labels. */
    if (ctx->checked & HK_GUARDED || hk_slab_returns(ctx, sc)) return 0;
    unsigned cap = (unsigned)hk_min(hk_classes[sc].magazine, ctx->magazines.cap);
    size_t hard = hk_hard_least(ctx);
    if (HK_LIKELY(!hard || hard >= HK_SLABS_FREE)) return cap;
    bool may = hard >= SMALL || (hard >= KEEP_LEAST && ctx->packed.heat[sc] >= HK_PACKED_HOT);
    return may ? (unsigned)hk_min(cap, SLOTS) : 0;
}

/* Packed blocks are freed in no row. */
HK_INLINE void **kept_slots(hak_ctx *ctx, unsigned n)
{
    hk_row *row = hk_meta_quick(ctx, hk_align_up(sizeof *row + n * sizeof(void *), 16));
    if (HK_UNLIKELY(!row)) return hk_row_slots(ctx, HK_BINS, n);
    *row = (hk_row){.room = (uint8_t)n};
    return (void **)(void *)(row + 1);
}

/* Opens a magazine for the class, whose bin has none yet, with the freed block p in it. false = the class may have none,
 * or there is no memory. */
HK_INLINE bool keep_first(hak_ctx *ctx, unsigned sc, char *p)
{
    unsigned most = kept_most(ctx, sc);
    if (HK_UNLIKELY(!most) || (hk_bins_none(ctx) && !hk_bins_make(ctx))) return false;
    void **slots = kept_slots(ctx, most);
    if (HK_UNLIKELY(!slots)) return false;
    hk_bin *bin = hk_bin_of(ctx, sc);
    hk_magazine_set(ctx, bin, slots, most, sc, hk_area_shift[HK_AREA_PACKED], hk_packed_labels_of(ctx, sc));
    if (ctx->labels.on && !bin->labels) bin->lo = HK_SHUT_EVER;
    ctx->packed.kept[sc / 64] |= UINT64_C(1) << (sc % 64);
    if (sc >= HK_KIB_CLASSES) ctx->magazines.larger_kept = true;
    bin->closed = HK_KEPT_FIRST + 1;
    *bin->top++ = p;
    return true;
}

/* Whether one more class may leave for speed. In a heap with less than two units in use only a few do: the
 * first slab of each of 63 classes would be a hundred times what 20 blocks take. */
static bool may_leave_hot(hak_ctx *ctx)
{
    enum { FEW = 4, UNITS = 2 };
    if (!may_leave(ctx)) return false;
    if (ctx->packed.left < FEW) return true;
    size_t bytes, blocks;
    hk_magazines_sum(ctx, &bytes, &blocks);
    return hk_get(&ctx->live_bytes) - bytes >= UNITS * HK_UNIT;
}

/* Puts a freed block into the magazine of its class. A class whose blocks come and go all the time leaves for
 * slabs. */
static bool keep(hak_ctx *ctx, unsigned sc, char *p)
{
    hk_bin *bin = hk_bin_of(ctx, sc);
    if (HK_UNLIKELY(!hk_packed_keeps(ctx, sc))) return !bin->slots && keep_first(ctx, sc, p);
    if (HK_UNLIKELY(bin->closed < HK_KEPT_FIRST)) {
        bin->closed = HK_KEPT_FIRST;
        if (may_leave_hot(ctx) && hk_class_open(ctx, sc)) {
            ctx->packed.left++;
            return false;
        }
    }
    if (HK_UNLIKELY(bin->top == bin->hi)) {
        if (bin->cap == 0) return false; /* a policy took it */
        hk_magazine_make_room(ctx, bin);
    }
    bin->closed++;
    *bin->top++ = p;
    return true;
}

/* A start is marked at p, and the next one `size` bytes behind it: a block, unless it is free or the region.
 */
static HK_NOINLINE void free_past(hak_ctx *ctx, char *p, unsigned sc, size_t size)
{
    hk_group g = hk_group_of(ctx, p);
    if (HK_UNLIKELY(hk_group_is_free(g, (size_t)(p - g.start)) || hk_packed_is_region(ctx, p))) {
        hk_found_wrong(ctx, HK_WRONG_BLOCK, p);
        return;
    }
    if (!(ctx->checked & HK_CHECKED) && is_regular(ctx, sc, p, size) && keep(ctx, sc, p)) return;
    warm_up(ctx, sc, FREED);
    put(ctx, g, p, sc, size);
}

void hk_packed_put_back(hak_ctx *ctx, void *p)
{
    hk_group g = hk_group_of(ctx, p);
    size_t size = hk_packed_size_in(ctx, g, p);
    if (HK_UNLIKELY(size == 0)) {
        hk_found_wrong(ctx, HK_WRONG_BLOCK, p);
        return;
    }
    unsigned sc = hk_class_of(size);
    warm_up(ctx, sc, FREED);
    put(ctx, g, p, sc, size);
}

/* Before magazines are worth their memory, and under a small limit, frees come here. No call, and no stack.
 */
static HK_NOINLINE void free_to_list(hak_ctx *ctx, char *p, unsigned sc)
{
    hk_group g = hk_group_in_window(ctx, p);
    if (HK_UNLIKELY(hk_group_is_free(g, (size_t)(p - g.start)) || hk_packed_is_region(ctx, p))) {
        hk_found_wrong(ctx, HK_WRONG_BLOCK, p);
        return;
    }
    warm_up(ctx, sc, FREED);
    put(ctx, g, p, sc, hk_classes[sc].size);
}

/* Frees the block with which the magazine of its class begins, if the class may have one. */
static HK_NOINLINE void free_first(hak_ctx *ctx, char *p, unsigned sc)
{
    hk_group g = hk_group_in_window(ctx, p);
    if (HK_UNLIKELY(hk_group_is_free(g, (size_t)(p - g.start)) || hk_packed_is_region(ctx, p))) {
        hk_found_wrong(ctx, HK_WRONG_BLOCK, p);
        return;
    }
    if (HK_UNLIKELY(!keep_first(ctx, sc, p))) free_to_list(ctx, p, sc);
}

/* Whether it is plain that the class gets no magazine now. */
HK_INLINE bool keeps_none(const hak_ctx *ctx, const hk_bin *bin)
{
    if (bin->closed >= HK_KEPT_FIRST) return false;
    size_t hard = hk_get(&ctx->account.hard);
    return ctx->packed.listed < HK_PACKED_PAID || (hard && hard < KEEP_LEAST);
}

void hk_packed_free_class(hak_ctx *ctx, void *p, const hk_bin *bin)
{
    unsigned sc = (unsigned)(bin - ctx->bins);
    if (keeps_none(ctx, bin)) free_to_list(ctx, p, sc);
    else if (!bin->slots) free_first(ctx, p, sc);
    else free_past(ctx, p, sc, hk_classes[sc].size);
}

/* Frees a block of any size, in the window or not. */
static HK_NOINLINE void free_unseen(hak_ctx *ctx, char *p)
{
    hk_group g = hk_group_of(ctx, p);
    size_t offset = (size_t)(p - g.start);
    if (HK_UNLIKELY(!hk_group_is_start(g, offset))) {
        hk_found_wrong(ctx, HK_WRONG_BLOCK, p);
        return;
    }
    size_t size = hk_group_next(g, offset) - offset;
    free_past(ctx, p, hk_class_of(size), size);
}

/* Whether two looks at the starts tell the class of the block at p. */
HK_INLINE bool class_seen(const hak_ctx *ctx, const void *p, unsigned *sc)
{
    uint64_t behind = 0;
    size_t unit = ((uintptr_t)p - ctx->base) >> HK_UNIT_SHIFT;
    if (HK_UNLIKELY(unit >= ctx->units)) return false;
    uintptr_t starts = hk_packed_starts(ctx, unit);
    if (HK_UNLIKELY(!hk_packed_marked(p, starts, &behind))) return false;
    if (HK_UNLIKELY(!behind)) return hk_packed_class_wide(p, starts, sc);
    *sc = hk_packed_class_by(behind);
    return true;
}

/* Calls come last: it needs no stack then. */
void hk_packed_free(hak_ctx *ctx, void *p)
{
    unsigned sc = 0;
    if (HK_UNLIKELY(!class_seen(ctx, p, &sc))) free_unseen(ctx, p);
    else if (HK_LIKELY(!ctx->checked)) hk_packed_free_class(ctx, p, hk_packed_bin(ctx, sc));
    else free_past(ctx, p, sc, hk_classes[sc].size);
}

/* The thread of a heap may be taking the block from its magazine meanwhile, and labels it. */
HK_RACY static unsigned label_of(const hak_ctx *ctx, const void *p, size_t size)
{
    return ctx->labels.on ? hk_packed_label(hk_packed_extent(ctx, p), p, size) : 0;
}

static bool visit_group(const hak_ctx *ctx, hk_group g, hak_visit_fn *fn, void *user)
{
    const hk_packed *k = &ctx->packed;
    size_t at = hk_group_first(g);
    while (at < g.size) {
        char *p = g.start + at;
        if (p == k->at && k->at < k->end) {
            at = (size_t)(k->end - g.start);
            continue;
        }
        size_t next = hk_group_next(g, at);
        if (!hk_group_is_free(g, at)) {
            unsigned label = label_of(ctx, p, next - at);
            hak_block block = {p, next - at, hk_label_known(ctx, label), 0};
            if (!fn(user, &block)) return false;
        }
        at = next;
    }
    return true;
}

bool hk_packed_visit(const hak_ctx *ctx, hak_visit_fn *fn, void *user)
{
    HK_EACH_GROUP(ctx, g)
    {
        if (!visit_group(ctx, g, fn, user)) return false;
    }
    return true;
}

#include "heap/packed_groups.h"

#include "heap/judge.h"
#include "heap/packed_group.h"
#include "heap/reclaim.h"

/* Free blocks are joined when a sixteenth of what is packed was freed since the last time: so each free pays
 * for its share of the work. */
enum { JOIN_SHIFT = 4 };

static bool in_reach(const hak_ctx *ctx, const char *unit)
{
    ptrdiff_t distance = (unit - (const char *)ctx) >> HK_GRANULE_SHIFT;
    return distance >= INT32_MIN && distance <= INT32_MAX - (ptrdiff_t)(HK_UNIT >> HK_GRANULE_SHIFT);
}

/* Where a group and its tables are. */
typedef struct tables {
    char *group;
    uintptr_t starts; /* biased */
    uint64_t *frees;
} tables;

static tables tables_of(hk_group g)
{
    return (tables){g.start, hk_group_starts_biased(g), hk_group_frees(g)};
}

/* Lists free bytes as blocks that the lists can hold. Fewer than 16 bytes are too few for a block. */
HK_INLINE void add_free(hak_ctx *ctx, tables t, char *p, size_t size)
{
    for (size_t n; size >= 16; p += n, size -= n) {
        n = hk_min(size, HK_SMALL_MAX);
        if (size - n == 8) n -= 16;
        hk_start_mark(t.starts, p);
        hk_bit_set(t.frees, (size_t)(p - t.group) >> 4);
        hk_packed_push(ctx, p, n);
    }
}

static void region_set(hak_ctx *ctx, hk_group g, char *from, char *to)
{
    hk_packed *k = &ctx->packed;
    HK_ASSERT(g.start + hk_group_first(g) <= from && from < to && to <= g.start + g.size);
    HK_ASSERT((uintptr_t)from % 8 == 0 && (uintptr_t)to % 8 == 0);
    k->group = g.start;
    k->starts = hk_group_starts_biased(g);
    k->frees = hk_group_frees(g);
    k->at = from;
    k->end = to;
    hk_start_mark(k->starts, from);
}

/* What is left of the region becomes free blocks. */
static void region_close(hak_ctx *ctx)
{
    hk_packed *k = &ctx->packed;
    HK_ASSERT(k->at <= k->end);
    if (k->at < k->end)
        add_free(ctx, (tables){k->group, k->starts, k->frees}, k->at, (size_t)(k->end - k->at));
    k->at = k->end = NULL;
}

/* Offset of the first free block at this start, or behind it. */
HK_INLINE size_t free_from(hk_group g, size_t offset)
{
    const uint64_t *frees = hk_group_frees(g);
    size_t words = g.size / 1024, i = offset / 1024;
    if (i >= words) return g.size;
    uint64_t w = frees[i] >> (offset / 16 % 64) << (offset / 16 % 64);
    while (!w && ++i < words)
        w = frees[i];
    if (!w) return g.size;
    size_t at = (i * 64 + (unsigned)__builtin_ctzll(w)) * 16;
    return hk_group_is_start(g, at) ? at : at + 8;
}

static hk_slab *record_of(const hak_ctx *ctx, hk_group g)
{
    const hk_extent *e = hk_extent_of(ctx->space, g.start);
    return hk_extent_slab(e, ((uintptr_t)g.start - e->base) >> HK_UNIT_SHIFT);
}

/* A bit for each page from one offset to the other. */
static uint32_t pages_of(size_t from, size_t to)
{
    return (uint32_t)((UINT64_C(1) << to / HK_PAGE) - (UINT64_C(1) << from / HK_PAGE));
}

/* Whether the group's pages may go back one by one. The context's first unit has no record of them. */
static bool may_part(const hak_ctx *ctx, hk_group g)
{
    return ctx->role == HK_LOCAL && g.start != (const char *)ctx && hk_extent_of(ctx->space, g.start)->owned;
}

/* Decommits pages of a group, which become a free block. */
static void pages_go(hak_ctx *ctx, hk_group g, size_t from, size_t to)
{
    hk_units_leave_pages(ctx, record_of(ctx, g), from, to - from);
    hk_group_head(g)->gone |= pages_of(from, to);
    ctx->packed.gone = (uint16_t)(ctx->packed.gone + (to - from) / HK_PAGE);
    hk_group_mark_free(g, from);
}

bool hk_packed_leave(hak_ctx *ctx, char *from, char *to)
{
    hk_group g = hk_group_of(ctx, from);
    if (!may_part(ctx, g)) return false;
    if (from < to) pages_go(ctx, g, (size_t)(from - g.start), (size_t)(to - g.start));
    return true;
}

/* Gives back the whole pages of the free bytes [at, to), and lists the rest. false = there is none. */
static HK_COLD bool leave_pages(hak_ctx *ctx, hk_group g, size_t at, size_t to)
{
    size_t from = hk_align_up(at, HK_PAGE), end = to & ~(size_t)(HK_PAGE - 1);
    if (to - end == 8) end -= HK_PAGE; /* their free bit would be that of the block behind them, too */
    if (from >= end) return false;
    pages_go(ctx, g, from, end);
    hk_uncharge(ctx, end - from);
    if (end < to) hk_group_mark_free(g, end);
    add_free(ctx, tables_of(g), g.start + at, from - at);
    add_free(ctx, tables_of(g), g.start + end, to - end);
    return true;
}

/* Free blocks side by side become one, and all of them are listed. No region is open. pages: whole pages of them
 * go back. */
HK_INLINE void join_group(hak_ctx *ctx, hk_group g, bool pages)
{
    const uint32_t gone = hk_group_head(g)->gone; /* bits of pages behind `to` do not change meanwhile */
    for (size_t at, to = hk_group_first(g); (at = free_from(g, to)) < g.size;) {
        to = hk_group_next(g, at);
        if (HK_UNLIKELY(gone >> at / HK_PAGE & 1)) continue;
        if (!hk_group_joins(g, to, gone) && to - at <= HK_SMALL_MAX && !(pages && to - at >= HK_PAGE)) {
            if (to - at >= 16) hk_packed_push(ctx, g.start + at, to - at); /* its bits are right */
            continue;
        }
        for (; hk_group_joins(g, to, gone); to = hk_group_next(g, to)) {
            hk_bit_clear(hk_group_starts(g), to >> 3);
            hk_bit_clear(hk_group_frees(g), to >> 4);
        }
        if (!pages || !leave_pages(ctx, g, at, to)) add_free(ctx, tables_of(g), g.start + at, to - at);
    }
}

void hk_packed_unlist(hak_ctx *ctx)
{
    region_close(ctx);
    memset(ctx->packed.free, 0, sizeof ctx->packed.free);
    memset(ctx->packed.some, 0, sizeof ctx->packed.some);
    ctx->packed.freed = 0;
}

static bool joining_pays(const hk_packed *k)
{
    return k->freed >= ((size_t)k->units << HK_UNIT_SHIFT) >> JOIN_SHIFT;
}

void hk_packed_relist(hak_ctx *ctx)
{
    hk_packed_unlist(ctx);
    ctx->packed.trimmed = HK_TRIMMED_NOT;
    HK_EACH_GROUP(ctx, g)
    {
        join_group(ctx, g, false);
    }
}

bool hk_packed_join(hak_ctx *ctx)
{
    if (!joining_pays(&ctx->packed)) return false;
    hk_packed_relist(ctx);
    return true;
}

void hk_packed_broken(hak_ctx *ctx, unsigned sc)
{
    hk_found_wrong(ctx, HK_WRONG_LINK, hk_packed_decode(ctx, ctx->packed.free[sc]));
    hk_packed_relist(ctx);
}

/* The smallest free block of at least so many bytes becomes the region. */
static bool region_again(hak_ctx *ctx, size_t least)
{
    unsigned sc = least > HK_SMALL_MAX ? HK_SMALL_CLASSES : hk_packed_listed_from(ctx, hk_class_of(least));
    if (sc >= HK_SMALL_CLASSES) return false;
    hk_free_block b;
    if (HK_UNLIKELY(!hk_packed_first(ctx, sc, &b))) {
        hk_packed_broken(ctx, sc);
        return region_again(ctx, least); /* all lists are right now */
    }
    hk_packed_pop(ctx, sc, b.p);
    size_t offset = (size_t)(b.p - b.group.start);
    region_close(ctx);
    region_set(ctx, b.group, b.p, b.p + b.size);
    hk_bit_clear(hk_group_frees(b.group), offset >> 4);
    return true;
}

/* Tells the units' records where their table of starts is. */
static void records_set(const hak_ctx *ctx, hk_group g)
{
    const hk_extent *e = hk_packed_extent(ctx, g.start);
    hk_slab *s = hk_extent_slab(e, ((uintptr_t)g.start - e->base) >> HK_UNIT_SHIFT);
    for (size_t i = 0; i < g.size >> HK_UNIT_SHIFT; i++)
        (s - i)->starts = hk_group_starts_biased(g);
}

static void group_open(hak_ctx *ctx, hk_group g, size_t lacks)
{
    hk_packed *k = &ctx->packed;
    size_t first = hk_group_first(g);
    memset(g.start + g.head, 0, first - g.head);
    hk_group_starts(g)[g.size / 512] = ~UINT64_C(0);
    records_set(ctx, g);
    hk_group_head(g)->before = k->last;
    k->last = (int32_t)((g.start - (const char *)ctx) / (ptrdiff_t)HK_UNIT);
    k->units = (uint16_t)(k->units + (g.size >> HK_UNIT_SHIFT));
    size_t end = g.size - lacks;
    hk_group_head(g)->gone = pages_of(end, g.size);
    k->gone = (uint16_t)(k->gone + lacks / HK_PAGE);
    if (lacks) hk_group_mark_free(g, end);
    region_set(ctx, g, g.start + first, g.start + end);
}

void hk_packed_init(hak_ctx *ctx)
{
    group_open(ctx, hk_group_of(ctx, ctx), 0);
    hk_packed_quicken(ctx);
}

static void group_give(hak_ctx *ctx, hk_slab *s, size_t lacks)
{
    if (lacks) hk_units_give_part(ctx, s, lacks);
    else hk_units_give(ctx, s);
}

static bool group_add(hak_ctx *ctx, hk_slab *s, size_t lacks)
{
    char *start = hk_slab_address(ctx->space, s);
    if (!in_reach(ctx, start)) {
        group_give(ctx, s, lacks);
        return false;
    }
    region_close(ctx);
    group_open(ctx, hk_group_of(ctx, start), lacks);
    return true;
}

/* Bytes of live blocks. */
static size_t live_of(const hk_packed *k)
{
    size_t granules = 0;
    for (unsigned sc = 0; sc < HK_SMALL_CLASSES; sc++)
        granules += k->live[sc];
    return granules * 16;
}

/* The holes are what classes left behind that have slabs now. Those who need larger blocks than the holes take slabs,
 * too, rather than spread what lives over more units. */
bool hk_packed_loose(const hk_packed *k)
{
    enum { UNITS = 8, FULL_PERCENT = 70 };
    if (k->units <= UNITS) return false;
    return live_of(k) * 100 < (((size_t)k->units << HK_UNIT_SHIFT) - k->gone * HK_PAGE) * FULL_PERCENT;
}

static bool group_new(hak_ctx *ctx, size_t units)
{
    bool zero;
    if (ctx->packed.units + units > ctx->packed.most && !hk_packed_scarce(ctx)) return false;
    hk_slab *s = hk_units_take(ctx, units, HK_KIND_PACKED, &zero);
    return s && group_add(ctx, s, 0);
}

/* Where a limit leaves less than the units, all but some pages at their end. */
static bool group_part(hak_ctx *ctx, size_t units, size_t size)
{
    size_t least = size + 8 + HK_PACKED_HEAD + units * HK_PACKED_TABLES + 2 * HK_BESIDE;
    if (ctx->role != HK_LOCAL || !hk_packed_scarce(ctx)) return false;
    for (size_t lacks = HK_PAGE; (units << HK_UNIT_SHIFT) - lacks >= least; lacks += HK_PAGE) {
        hk_slab *s = hk_units_take_part(ctx, units, lacks, HK_KIND_PACKED);
        if (s) return group_add(ctx, s, lacks);
    }
    return false;
}

/* Charges pages again that a group gave back, as many as a block of that size needs. The block may have to be aligned.
 * They become the region. false = there is no such row of pages, or a limit leaves too little. */
static HK_COLD bool region_regain(hak_ctx *ctx, size_t size)
{
    size_t n = hk_align_up(size + 8, HK_PAGE);
    HK_EACH_GROUP(ctx, g)
    {
        for (size_t from = 0, to; from < g.size; from = to) {
            to = from + HK_PAGE;
            if (!hk_group_is_gone(g, from)) continue;
            while (to - from < n && to < g.size && hk_group_is_gone(g, to))
                to += HK_PAGE;
            if (to - from < n) continue;
            if (!hk_units_regain_pages(ctx, record_of(ctx, g), from, n)) return false;
            for (size_t at = from; at < to; at += HK_PAGE) {
                hk_bit_clear(hk_group_starts(g), at >> 3);
                hk_bit_clear(hk_group_frees(g), at >> 4);
            }
            hk_group_head(g)->gone &= ~pages_of(from, to);
            ctx->packed.gone = (uint16_t)(ctx->packed.gone - n / HK_PAGE);
            if (to < g.size && hk_group_is_gone(g, to)) hk_group_mark_free(g, to);
            region_close(ctx);
            region_set(ctx, g, g.start + from, g.start + to);
            return true;
        }
    }
    return false;
}

/* The fewest units of a group in which a block of that size fits, aligned. */
static size_t units_for(size_t size)
{
    enum { ROOM = HK_UNIT - HK_PACKED_TABLES };
    return (size + 8 + HK_PACKED_HEAD + 2 * HK_BESIDE + ROOM - 1) / ROOM;
}

/* Groups are larger where there are many: less is lost at their ends. */
bool hk_packed_group_next(hak_ctx *ctx, size_t size)
{
    enum { PART_SHIFT = 2, MOST = 4 };
    if (HK_UNLIKELY(ctx->packed.gone != 0) && region_regain(ctx, size)) return true;
    if (hk_packed_loose(&ctx->packed) && !hk_packed_limited(ctx) && !hk_packed_scarce(ctx)) return false;
    size_t fewest = units_for(size),
           units = ctx->role == HK_LOCAL ? hk_min(ctx->packed.units >> PART_SHIFT, MOST) : 0;
    for (units = hk_max(units, fewest); units >= fewest; units--) /* fewer near a limit */
        if (group_new(ctx, units)) return true;
    return group_part(ctx, fewest, size);
}

bool hk_packed_region_next(hak_ctx *ctx, size_t size)
{
    size_t least = size % 16 ? size : size + 8;
    if (region_again(ctx, least) || (hk_packed_join(ctx) && region_again(ctx, least))) return true;
    return hk_packed_group_next(ctx, size);
}

static bool any_live(hk_group g)
{
    for (size_t at = hk_group_first(g); at < g.size; at = hk_group_next(g, at))
        if (!hk_group_is_free(g, at)) return true;
    return false;
}

static void group_drop(hak_ctx *ctx, hk_group g)
{
    size_t lacks = hk_packed_lacks(hk_group_head(g));
    HK_ASSERT(ctx->packed.units > g.size >> HK_UNIT_SHIFT);
    ctx->packed.units = (uint16_t)(ctx->packed.units - (g.size >> HK_UNIT_SHIFT));
    ctx->packed.gone = (uint16_t)(ctx->packed.gone - lacks / HK_PAGE);
    group_give(ctx, record_of(ctx, g), lacks);
}

void hk_packed_trim_much(hak_ctx *ctx)
{
    if (!ctx->packed.trimmed || joining_pays(&ctx->packed)) hk_packed_trim(ctx);
}

void hk_packed_trim_freed(hak_ctx *ctx)
{
    const hk_packed *k = &ctx->packed;
    if (!k->trimmed || (size_t)k->freed << JOIN_SHIFT >= live_of(k)) hk_packed_trim(ctx);
}

static void trim(hak_ctx *ctx, uint8_t how)
{
    hk_packed *k = &ctx->packed;
    if (!k->units || (k->trimmed >= how && !k->freed)) return;
    hk_packed_unlist(ctx);
    k->trimmed = how;
    int32_t *link = &k->last;
    for (hk_group g = hk_group_last(ctx), before; g.start; g = before) {
        before = hk_group_before(ctx, g);
        if (before.start && !any_live(g)) {
            group_drop(ctx, g);
            continue;
        }
        *link = (int32_t)((g.start - (const char *)ctx) / (ptrdiff_t)HK_UNIT);
        link = &hk_group_head(g)->before;
        join_group(ctx, g, how == HK_TRIMMED_PAGES && may_part(ctx, g));
    }
}

void hk_packed_trim(hak_ctx *ctx)
{
    trim(ctx, HK_TRIMMED_UNITS);
}

void hk_packed_trim_pages(hak_ctx *ctx)
{
    trim(ctx, HK_TRIMMED_PAGES);
}

#include "heap/packed_grow.h"

#include "heap/label.h"
#include "heap/packed_group.h"
#include "heap/packed_groups.h"

/* The end of the region, if it begins at this offset. 0 = it does not. */
static size_t region_end(const hak_ctx *ctx, hk_group g, size_t at)
{
    const hk_packed *k = &ctx->packed;
    return hk_packed_is_region(ctx, g.start + at) ? (size_t)(k->end - g.start) : 0;
}

/* Offset of the end of the free bytes that begin at `at`. */
static size_t free_to(const hak_ctx *ctx, hk_group g, size_t at)
{
    for (size_t end;;) {
        if (hk_group_joins(g, at, hk_group_head(g)->gone)) at = hk_group_next(g, at);
        else if ((end = region_end(ctx, g, at)) != 0) at = end;
        else return at;
    }
}

/* Offset of the last start in front of the one at `at`; 0 = there is none. */
static size_t start_before(hk_group g, size_t at)
{
    const uint64_t *starts = hk_group_starts(g);
    size_t i = at >> 3, word = i / 64;
    uint64_t w = starts[word] & ((UINT64_C(1) << i % 64) - 1);
    while (!w && word > 0)
        w = starts[--word];
    return w ? (word * 64 + hk_log2(w)) << 3 : 0;
}

/* Offset of the beginning of the free bytes that end at `at`. */
static size_t free_back_to(const hak_ctx *ctx, hk_group g, size_t at)
{
    for (size_t before; (before = start_before(g, at)) != 0; at = before)
        if (!hk_group_joins(g, before, hk_group_head(g)->gone) && region_end(ctx, g, before) != at) break;
    return at;
}

/* What the block would be: where it begins, and its bytes. */
typedef struct place {
    size_t at, size;
} place;

/* Finds room for a block of n bytes between two offsets; not at `at`, unless there is room behind it. */
static bool place_fits(size_t from, size_t at, size_t to, size_t n, place *now)
{
    now->size = hk_align_up(n, n % 16 ? 8 : 16);
    now->at = at;
    bool stays = to - at >= now->size && (n % 16 || at % 16 == 0);
    if (!stays) now->at = hk_align_up(from, 16);
    if (now->at > to || to - now->at < now->size) return false;
    /* A rest of 8 bytes would share its free bit with the block behind it. With these 8 bytes, a block at half of a
     * step of 16 would have a multiple of 16, and who gets its place next relies on the alignment of that. */
    if (to - now->at - now->size == 8 && to % 16 == 8) {
        if (now->at % 16) return false;
        now->size += 8;
    }
    return now->size <= HK_SMALL_MAX;
}

/* The marks of all that starts between two offsets go, and those of the new block and its rests come. */
static void mark(hk_group g, size_t from, size_t to, place now)
{
    for (size_t at = from, next; at < to; at = next) {
        next = hk_group_next(g, at);
        hk_bit_clear(hk_group_starts(g), at >> 3);
        hk_bit_clear(hk_group_frees(g), at >> 4);
    }
    size_t end = now.at + now.size;
    hk_bit_set(hk_group_starts(g), now.at >> 3);
    if (from < now.at) hk_group_mark_free(g, from);
    if (end < to) hk_group_mark_free(g, end);
}

void *hk_packed_grow(hak_ctx *ctx, void *p, size_t n)
{
    if (ctx->role != HK_LOCAL || n > HK_SMALL_MAX) return NULL;
    hk_group g = hk_group_of(ctx, p);
    size_t at = (size_t)((char *)p - g.start), size = hk_packed_size_in(ctx, g, p);
    if (size == 0 || size >= n) return NULL;
    size_t from = free_back_to(ctx, g, at), to = free_to(ctx, g, at + size);
    place now;
    if (!place_fits(from, at, to, n, &now)) return NULL;
    if (ctx->packed.live[hk_class_of(now.size)] >= UINT16_MAX / 2) return NULL;
    const hk_extent *e = hk_packed_extent(ctx, p);
    unsigned label = ctx->labels.on ? hk_packed_label(e, p, size) : 0;
    hk_packed_unlist(ctx);
    if (now.at == at) from = at;
    mark(g, from, to, now);
    char *q = memmove(g.start + now.at, p, size);
    if (ctx->labels.on) hk_packed_label_set(e, q, now.size, label);
    hk_packed_count_out(ctx, hk_class_of(size), size);
    hk_packed_count_in(ctx, hk_class_of(now.size), now.size);
    hk_packed_relist(ctx);
    return q;
}

/* Copies the block of `size` bytes at p to q, and gives back its pages [from, to). What is beside them becomes free. */
static void move_pages(hak_ctx *ctx, char *p, size_t size, char *q, char *from, char *to)
{
    hk_group g = hk_group_of(ctx, p);
    char *end = p + size;
    memcpy(q + (to - p), to, (size_t)(end - to));
    if (to < end) hk_group_mark_free(g, (size_t)(to - g.start));
    for (char *at = to; at > from; at -= HK_PAGE) {
        memcpy(q + (at - HK_PAGE - p), at - HK_PAGE, HK_PAGE);
        hk_packed_leave(ctx, at - HK_PAGE, at);
    }
    memcpy(q, p, (size_t)(from - p));
    hk_bit_set(hk_group_frees(g), (size_t)(p - g.start) >> 4);
}

void *hk_packed_move(hak_ctx *ctx, void *block, size_t n)
{
    if (ctx->role != HK_LOCAL || n < HK_UNIT || n > HK_RUN_MAX) return NULL;
    char *p = block;
    size_t size = hk_packed_size_in(ctx, hk_group_of(ctx, p), p);
    char *from = (char *)hk_align_up((uintptr_t)p, HK_PAGE),
         *to = (char *)((uintptr_t)(p + size) & ~(uintptr_t)(HK_PAGE - 1));
    if (p + size - to == 8) to -= HK_PAGE; /* their free bit would be that of the block behind them, too */
    if (size == 0 || size >= n || to < from + 2 * HK_PAGE || !hk_packed_leave(ctx, from, from)) return NULL;
    unsigned sc = hk_run_class((n + HK_UNIT - 1) >> HK_UNIT_SHIFT), kind = HK_SMALL_CLASSES + sc;
    /* One page is there twice. */
    hk_slab *s = hk_units_take_ahead(ctx, hk_run_units(sc), (size_t)(to - from) - HK_PAGE, kind);
    if (!s) return NULL;
    s->used = 1;
    char *q = hk_slab_address(ctx->space, s);
    if (ctx->labels.on)
        hk_label_set(hk_extent_of(ctx->space, q), kind, q,
                     (hak_label)hk_packed_label(hk_packed_extent(ctx, p), p, size));
    hk_packed_unlist(ctx);
    move_pages(ctx, p, size, q, from, to);
    hk_packed_relist(ctx);
    hk_uncharge(ctx, HK_PAGE);
    hk_packed_count_out(ctx, hk_class_of(size), size);
    hk_count_in(ctx, (size_t)s->units << HK_UNIT_SHIFT, 1);
    return q;
}

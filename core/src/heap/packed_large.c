#include "heap/packed_large.h"

#include "heap/packed_group.h"
#include "heap/packed_groups.h"

/* What a free block has room for, aligned to 16. */
static size_t room_of(const hk_free_block *b)
{
    return b->size - (uintptr_t)b->p % 16;
}

/* The tightest of the first blocks in a list of which only some are large enough. It leaves the list. */
static bool take_tightest(hak_ctx *ctx, unsigned sc, size_t size, hk_free_block *best)
{
    enum { LOOKS = 64 };
    char *before = NULL, *best_before = NULL;
    uint32_t link = ctx->packed.free[sc];
    best->p = NULL;
    for (unsigned i = 0; link && i < LOOKS; i++) {
        hk_free_block b = {.p = hk_packed_decode(ctx, link)};
        if (HK_UNLIKELY(!hk_free_block_measure(ctx, sc, &b))) {
            hk_packed_broken(ctx, sc);
            return false;
        }
        if (room_of(&b) >= size && (!best->p || b.size < best->size)) {
            *best = b;
            best_before = before;
        }
        before = b.p;
        memcpy(&link, b.p, sizeof link);
    }
    if (!best->p) return false;
    if (best_before) memcpy(best_before, best->p, sizeof link);
    else hk_packed_pop(ctx, sc, best->p);
    return true;
}

/* The first block of the smallest class all of which are large enough. */
static bool take_wider(hak_ctx *ctx, unsigned sc, hk_free_block *b)
{
    sc = hk_packed_listed_from(ctx, sc);
    if (sc >= HK_SMALL_CLASSES) return false;
    if (HK_UNLIKELY(!hk_packed_first(ctx, sc, b))) {
        hk_packed_broken(ctx, sc);
        return false;
    }
    hk_packed_pop(ctx, sc, b->p);
    return true;
}

static void *hand_out(hak_ctx *ctx, const hk_extent *e, char *p, size_t size, hak_label label)
{
    if (ctx->labels.on) hk_packed_label_set(e, p, size, (uint8_t)label);
    hk_packed_count_in(ctx, hk_class_of(size), size);
    return p;
}

/* What is left of the free block stays free; 8 bytes are in no list. */
static void *cut_listed(hak_ctx *ctx, size_t size, hak_label label)
{
    hk_free_block b = {0};
    unsigned sc = hk_class_of(size);
    if (hk_classes[sc].size > size) sc--;
    if (!take_tightest(ctx, sc, size, &b) && !take_wider(ctx, sc + 1, &b)) return NULL;
    char *end = b.p + b.size, *p = (char *)((uintptr_t)(end - size) & ~(uintptr_t)15);
    size_t offset = (size_t)(p - b.group.start);
    if (p == b.p) hk_bit_clear(hk_group_frees(b.group), offset >> 4);
    else if (p > b.p + 8) hk_packed_push(ctx, b.p, (size_t)(p - b.p));
    hk_bit_set(hk_group_starts(b.group), offset >> 3);
    return hand_out(ctx, b.extent, p, (size_t)(end - p), label);
}

static void *cut_region(hak_ctx *ctx, size_t size, hak_label label)
{
    hk_packed *k = &ctx->packed;
    char *end = k->end;
    if ((size_t)(end - k->at) < size) return NULL;
    char *p = (char *)((uintptr_t)(end - size) & ~(uintptr_t)15);
    if (p < k->at) return NULL;
    if (p == k->at + 8) {
        hk_start_mark(k->starts, k->at);
        hk_bit_set(k->frees, (size_t)(k->at - k->group) >> 4);
        k->at = p;
    }
    HK_ASSERT(k->at <= p && (size_t)(end - p) >= size);
    hk_start_mark(k->starts, p);
    k->end = p;
    return hand_out(ctx, hk_packed_extent(ctx, p), p, (size_t)(end - p), label);
}

void *hk_packed_large(hak_ctx *ctx, size_t n, hak_label label)
{
    size_t size = hk_align_up(n, 16);
    void *p = cut_listed(ctx, size, label);
    if (!p) p = cut_region(ctx, size, label);
    if (!p && hk_packed_join(ctx)) p = cut_listed(ctx, size, label);
    if (!p && hk_packed_group_next(ctx, size)) p = cut_region(ctx, size, label);
    return p;
}

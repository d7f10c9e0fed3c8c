#include "heap/big.h"

#include "heap/account.h"
#include "heap/big_cache.h"
#include "heap/label.h"
#include "heap/magazine.h"
#include "heap/metadata.h"
#include "heap/reclaim.h"

enum { COPIED_MOST = 512 << 10 }; /* a run that grows further is not copied again */

static void account(hak_ctx *ctx, const hk_big *b)
{
    hk_count_in(ctx, b->size, 1);
    hk_add(&ctx->big.bytes, b->size);
    hk_add(&ctx->big.blocks, 1);
}

static void discount_big(hak_ctx *ctx, const hk_big *b)
{
    HK_ASSERT(b->ctx == ctx && !b->cached && hk_get(&ctx->big.bytes) >= b->size);
    hk_count_out(ctx, b->size, 1);
    hk_sub(&ctx->big.bytes, b->size);
    hk_sub(&ctx->big.blocks, 1);
}

static hk_big *record_new(hak_ctx *ctx)
{
    hk_big *b = ctx->big.spare;
    if (b) {
        ctx->big.spare = b->next;
        return b;
    }
    b = hk_meta_alloc(ctx, sizeof *b);
    if (b) b->ctx = ctx;
    return b;
}

static bool big_wants_huge(const hak_ctx *ctx, size_t size)
{
    return size >= HK_CHUNK && hk_space_wants_huge(ctx->space, hk_expected(ctx));
}

static hk_big *map_new(hak_ctx *ctx, size_t align, size_t size)
{
    hak_space *s = ctx->space;
    hk_big *b = s->buffer_only ? NULL : record_new(ctx);
    if (!b) return NULL;
    hk_big_yield(ctx, size, hk_space_peaks(s, size));
    if (hk_reclaim_charge(ctx, size)) {
        hk_magazines_yield(ctx, size);
        bool huge = big_wants_huge(ctx, size);
        b->p = hk_space_map(s, size, huge ? hk_max(align, HK_CHUNK) : align);
        if (b->p && huge) hk_space_huge(s, b->p, size);
        if (b->p) {
            b->size = size;
            b->room = 0;
            b->room_purged = false;
            return b;
        }
        hk_refund(ctx, size);
    }
    hk_big_record_drop(ctx, b);
    return NULL;
}

static void set_size(hak_ctx *ctx, hk_big *b, size_t size, size_t room)
{
    HK_ASSERT(size && size % HK_PAGE == 0 && room % HK_PAGE == 0);
    HK_ASSERT(b->room_purged || ctx->big.room >= b->room);
    if (!b->room_purged) ctx->big.room += room - b->room;
    if (room == 0) b->room_purged = false;
    __atomic_store_n(&b->size, size, __ATOMIC_RELAXED);
    b->room = room;
    b->unused_since = 0;
}

/* Lengthens a block that was taken from the cache and is too small. */
static bool lengthen_cached(hak_ctx *ctx, hk_big *b, size_t size)
{
    size_t more = size - b->size;
    hk_cached_missed(ctx, b->size);
    hk_cached_wish_less(ctx, b->size, size + size / 8);
    char *p = NULL;
    if (hk_reclaim_charge(ctx, more)) {
        hk_big_leave(ctx->space, b);
        p = hk_space_remap(ctx->space, b->p, b->size, size);
        if (p) {
            b->p = p;
            b->size = size;
        }
        hk_big_enter(ctx->space, b);
        if (!p) hk_refund(ctx, more);
    }
    if (!p) hk_big_unmap(ctx, b);
    return p;
}

/* At a new peak of the space, where cached blocks would have to yield, one of another size lends its pages:
 * the rest of it is room, or it is lengthened. NULL = none. */
static hk_big *take_other(hak_ctx *ctx, size_t align, size_t size)
{
    const hak_space *s = ctx->space;
    if (hk_get(&ctx->big.cached_bytes) <= hk_min(ctx->big.wish, ctx->big.cache) || align > HK_PAGE)
        return NULL;
    if (!s->os.remap || !hk_space_peaks(s, size) || big_wants_huge(ctx, size)) return NULL;
    hk_big *b = hk_cached_nearest(ctx, size);
    if (!b) return NULL;
    hk_cached_take(ctx, b);
    if (b->size < size) return lengthen_cached(ctx, b, size) ? b : NULL;
    set_size(ctx, b, size, b->size - size);
    return b;
}

static void *hand_out_big(hak_ctx *ctx, hk_big *b, hak_label label, hak_site site)
{
    b->cached = false;
    b->site = site;
    b->label = hk_label_clamp(label);
    hk_big_list_add(&ctx->big.live, b);
    account(ctx, b);
    return b->p;
}

void *hk_big_alloc(hak_ctx *ctx, size_t align, size_t n, hak_label label, hak_site site, bool *zero)
{
    size_t size = hk_align_up(hk_max(n, HK_PAGE), HK_PAGE);
    align = hk_max(align, HK_PAGE);
    hk_big *b = hk_cached_fit(ctx, align, size, site);
    if (!b) {
        hk_cached_asked(ctx, size, size / 8);
        b = take_other(ctx, align, size);
    }
    *zero = !b;
    if (!b) {
        b = map_new(ctx, align, size);
        if (!b) return NULL;
        hk_big_enter(ctx->space, b);
    }
    b->grew = false;
    return hand_out_big(ctx, b, label, site);
}

bool hk_big_fits(const hak_ctx *ctx, size_t n)
{
    return hk_cached_to_grow(ctx, hk_align_up(n, HK_PAGE));
}

void *hk_big_regrow(hak_ctx *ctx, size_t n, hak_label label, hak_site site)
{
    size_t size = hk_align_up(n, HK_PAGE);
    hk_big *b = hk_cached_to_grow(ctx, size);
    bool zero;
    if (!b && (n <= COPIED_MOST || !ctx->space->os.remap)) return NULL;
    if (!b) return hk_big_alloc(ctx, HK_PAGE, n, label, site, &zero);
    hk_cached_take(ctx, b);
    b->grew = true;
    set_size(ctx, b, size, b->size - size);
    return hand_out_big(ctx, b, label, site);
}

void hk_big_free(hak_ctx *ctx, hk_big *b)
{
    hk_big_list_remove(&ctx->big.live, b);
    discount_big(ctx, b);
    size_t keep = hk_cached_limit(ctx), mapped = hk_big_mapped(b);
    if (b->room_purged || mapped > keep) {
        if (!b->room_purged) ctx->big.room -= b->room;
        if (!b->room_purged) hk_cached_missed(ctx, mapped);
        hk_big_unmap(ctx, b);
        return;
    }
    set_size(ctx, b, mapped, 0);
    hk_cached_put(ctx, b, keep);
}

static void resized_big(hak_ctx *ctx, hk_big *b, char *p, size_t size, size_t room)
{
    discount_big(ctx, b);
    if (b->p != p) b->p = p; /* a block that stays is in the tree, which other threads read */
    b->grew |= size > b->size;
    set_size(ctx, b, size, room);
    account(ctx, b);
}

/* size: within the mapping. */
static bool take_room(hak_ctx *ctx, hk_big *b, size_t size)
{
    size_t more = b->room_purged ? size - b->size : 0;
    if (more && !hk_reclaim_charge(ctx, more)) return false;
    if (more && hk_space_commit(ctx->space, b->p + b->size, more) != 0) {
        hk_refund(ctx, more);
        return false;
    }
    resized_big(ctx, b, b->p, size, hk_big_mapped(b) - size);
    return true;
}

static char *remap(hak_ctx *ctx, hk_big *b, size_t size)
{
    size_t old = hk_big_mapped(b);
    hk_big_leave(ctx->space, b);
    char *p = hk_space_remap(ctx->space, b->p, old, size);
    if (p && size > old && big_wants_huge(ctx, size)) hk_space_huge(ctx->space, p, size);
    if (p) resized_big(ctx, b, p, size, 0);
    hk_big_enter(ctx->space, b);
    return p;
}

static char *lengthen(hak_ctx *ctx, hk_big *b, size_t size)
{
    size_t old = b->size, room = b->room, more = size - hk_big_mapped(b);
    /* If the charge were refused, hk_reclaim_charge would give up this very room. */
    if (room && !take_room(ctx, b, old + room)) return NULL;
    char *p = NULL;
    hk_cached_asked(ctx, size, 0);
    hk_big_yield(ctx, more, hk_space_peaks(ctx->space, more));
    if (hk_reclaim_charge(ctx, more)) {
        hk_magazines_yield(ctx, more);
        p = remap(ctx, b, size);
        if (!p) hk_refund(ctx, more);
    }
    if (!p && room) resized_big(ctx, b, b->p, old, room);
    HK_ASSERT(hk_charged_right(ctx));
    return p;
}

void *hk_big_resize(hak_ctx *ctx, hk_big *b, size_t n)
{
    size_t size = hk_align_up(n, HK_PAGE), charged = b->room_purged ? b->size : hk_big_mapped(b);
    if (size > hk_big_mapped(b)) return lengthen(ctx, b, size);
    if (size >= b->size) return take_room(ctx, b, size) ? b->p : NULL;
    char *p = size > HK_RUN_MAX ? remap(ctx, b, size) : NULL;
    if (p) hk_uncharge(ctx, charged - size);
    HK_ASSERT(hk_charged_right(ctx));
    return p;
}

void hk_big_destroy(hak_ctx *ctx)
{
    hk_big_purge(ctx);
    while (ctx->big.live) {
        hk_big *b = ctx->big.live;
        hk_big_list_remove(&ctx->big.live, b);
        hk_big_unmap(ctx, b);
    }
}

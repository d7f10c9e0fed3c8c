#include "heap/big.h"
#include "heap/magazine.h"

#include "heap/label.h"
#include "heap/reclaim.h"
#include "heap/slab.h"

static void list_add(hk_big **list, hk_big *b)
{
    b->prev = NULL;
    b->next = *list;
    if (b->next) b->next->prev = b;
    *list = b;
}

static void list_remove(hk_big **list, hk_big *b)
{
    if (b->prev) b->prev->next = b->next;
    else *list = b->next;
    if (b->next) b->next->prev = b->prev;
}

static void account(hak_ctx *ctx, const hk_big *b)
{
    hk_count_in(ctx, b->size, 1);
    hk_add(&ctx->big.bytes, b->size);
    hk_add(&ctx->big.blocks, 1);
}

static void discount(hak_ctx *ctx, const hk_big *b)
{
    hk_count_out(ctx, b->size, 1);
    hk_sub(&ctx->big.bytes, b->size);
    hk_sub(&ctx->big.blocks, 1);
}

static void take(hak_ctx *ctx, hk_big *b)
{
    list_remove(&ctx->big.cached, b);
    hk_sub(&ctx->big.cached_bytes, b->size);
}

/* Finds the block that this call site freed last, else the tightest fit that wastes at most an eighth. */
static hk_big *take_cached(hak_ctx *ctx, size_t align, size_t size, hak_site site)
{
    hk_big *best = NULL;
    for (hk_big *b = ctx->big.cached; b; b = b->next) {
        if (b->size < size || b->size - size > size / 8 || (uintptr_t)b->p & (align - 1)) continue;
        if (!best || (b->site == site) > (best->site == site) ||
            ((b->site == site) == (best->site == site) && b->size < best->size))
            best = b;
        if (best == b && b->site == site && b->size == size) break;
    }
    if (best) take(ctx, best);
    return best;
}

enum { COPIED_MOST = 512 << 10 }; /* a run that grows further is not copied again */
enum { REGROW_FROM = 256 << 10 }; /* ... nor beyond this, if a block that grew is kept */

/* The tightest fit of which at least an eighth is in use, or one that grew to its size: a block that grows in
 * the place of another one may well grow as far. */
static hk_big *cached_to_grow(const hak_ctx *ctx, size_t size)
{
    hk_big *best = NULL;
    for (hk_big *b = ctx->big.cached; b; b = b->next) {
        bool near = b->size / 8 <= size || (b->grew && size > REGROW_FROM);
        if (b->size >= size && near && (!best || b->size < best->size)) best = b;
    }
    return best;
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

static void record_drop(hak_ctx *ctx, hk_big *b)
{
    b->next = ctx->big.spare;
    ctx->big.spare = b;
}

/* What the cache may hold follows the heap. It grows when a block is asked for that was given up lately: a
 * program that frees and allocates the same sizes again and again would take a page fault for each page,
 * every time. */
static size_t cache_limit(const hak_ctx *ctx)
{
    size_t live = hk_get(&ctx->live_bytes) / 4;
    return hk_max(hk_min(ctx->big.cache, hk_max(live, ctx->big.cache / 4)), ctx->big.wish);
}

/* The most that it grows to. */
static size_t wish_most(const hak_ctx *ctx)
{
    const size_t most = (size_t)64 << 20;
    return ctx->big.cache ? hk_max(ctx->big.cache, hk_max(most, hk_get(&ctx->live_bytes) / 4)) : 0;
}

enum { MISSED_GRAIN = 64 << 10 };

/* Whether a block of this size, or up to `more` bytes larger, was given up lately. */
static void note_asked(hak_ctx *ctx, size_t size, size_t more)
{
    for (unsigned i = 0; i < HK_BIG_MISSED; i++) {
        size_t missed = (size_t)ctx->big.missed[i] * MISSED_GRAIN;
        if (missed < size || missed - size >= more + MISSED_GRAIN) continue;
        ctx->big.missed[i] = 0;
        ctx->big.wish = hk_min(cache_limit(ctx) + missed, wish_most(ctx));
        return;
    }
}

/* Remembers the size of a block that was given up, in case it is asked for again. */
static void note_missed(hak_ctx *ctx, size_t size)
{
    size_t grains = hk_align_up(size, MISSED_GRAIN) / MISSED_GRAIN;
    ctx->big.missed[ctx->big.missed_at++ % HK_BIG_MISSED] = (uint16_t)hk_min(grains, UINT16_MAX);
}

static void unmap(hak_ctx *ctx, hk_big *b)
{
    hk_big_leave(ctx->space, b);
    hk_space_unmap(ctx->space, b->p, hk_big_mapped(b));
    hk_uncharge(ctx, b->room_purged ? b->size : hk_big_mapped(b));
    record_drop(ctx, b);
}

static void give_up(hak_ctx *ctx, hk_big *b)
{
    take(ctx, b);
    unmap(ctx, b);
}

static hk_big *oldest_cached(const hak_ctx *ctx)
{
    hk_big *b = ctx->big.cached;
    while (b->next)
        b = b->next;
    return b;
}

static void give_up_noted(hak_ctx *ctx, hk_big *b)
{
    note_missed(ctx, b->size);
    give_up(ctx, b);
}

/* The cache may become smaller than it was. */
static void wish_less(hak_ctx *ctx, size_t n, size_t least)
{
    if (ctx->big.wish > least) ctx->big.wish -= hk_min(ctx->big.wish - least, n);
}

/* Returns bytes. */
static size_t give_up_room(hak_ctx *ctx, hk_big *b)
{
    if (b->room == 0 || b->room_purged) return 0;
    hk_space_decommit(ctx->space, b->p + b->size, b->room);
    hk_uncharge(ctx, b->room);
    ctx->big.room -= b->room;
    b->room_purged = true;
    return b->room;
}

void hk_big_yield(hak_ctx *ctx, size_t n, bool peak)
{
    size_t keep = peak ? hk_min(ctx->big.wish, ctx->big.cache) : ctx->big.wish;
    ctx->big.grown += n;
    while (hk_get(&ctx->big.cached_bytes) > keep) {
        hk_big *oldest = oldest_cached(ctx);
        if (oldest->size > ctx->big.grown) return;
        ctx->big.grown -= oldest->size;
        wish_less(ctx, oldest->size, ctx->big.cache);
        give_up_noted(ctx, oldest);
    }
    for (hk_big *b = peak ? ctx->big.live : NULL; b && ctx->big.room > keep; b = b->next) {
        if (b->room > ctx->big.grown) continue;
        ctx->big.grown -= give_up_room(ctx, b);
    }
    if (!peak || ctx->big.room <= keep) ctx->big.grown = 0;
}

static bool wants_huge(const hak_ctx *ctx, size_t size)
{
    return size >= HK_CHUNK && hk_wants_huge(ctx);
}

static hk_big *map_new(hak_ctx *ctx, size_t align, size_t size)
{
    hak_space *s = ctx->space;
    hk_big *b = s->buffer_only ? NULL : record_new(ctx);
    if (!b) return NULL;
    hk_big_yield(ctx, size, hk_space_peaks(s, size));
    if (hk_reclaim_charge(ctx, size)) {
        hk_magazines_yield(ctx, size);
        bool huge = wants_huge(ctx, size);
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
    record_drop(ctx, b);
    return NULL;
}

static void set_size(hak_ctx *ctx, hk_big *b, size_t size, size_t room)
{
    if (!b->room_purged) ctx->big.room += room - b->room;
    if (room == 0) b->room_purged = false;
    __atomic_store_n(&b->size, size, __ATOMIC_RELAXED);
    b->room = room;
    b->unused_since = 0;
}

/* Prefers the tightest that is up to twice as large, then the largest of the smaller ones. */
static hk_big *nearest(const hak_ctx *ctx, size_t size)
{
    hk_big *best = NULL;
    for (hk_big *b = ctx->big.cached; b; b = b->next) {
        if (b->size / 2 > size) continue;
        bool fits = b->size >= size, best_fits = best && best->size >= size;
        if (!best || fits > best_fits || (fits == best_fits && (b->size < best->size) == fits)) best = b;
    }
    return best;
}

/* Lengthens a block that was taken from the cache and is too small. */
static bool lengthen_cached(hak_ctx *ctx, hk_big *b, size_t size)
{
    size_t more = size - b->size;
    note_missed(ctx, b->size);
    wish_less(ctx, b->size, size + size / 8);
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
    if (!p) unmap(ctx, b);
    return p;
}

/* At a new peak of the space, where cached blocks would have to yield, one of another size lends its pages:
 * the rest of it is room, or it is lengthened. NULL = none. */
static hk_big *take_other(hak_ctx *ctx, size_t align, size_t size)
{
    const hak_space *s = ctx->space;
    if (hk_get(&ctx->big.cached_bytes) <= hk_min(ctx->big.wish, ctx->big.cache) || align > HK_PAGE)
        return NULL;
    if (!s->os.remap || !hk_space_peaks(s, size) || wants_huge(ctx, size)) return NULL;
    hk_big *b = nearest(ctx, size);
    if (!b) return NULL;
    take(ctx, b);
    if (b->size < size) return lengthen_cached(ctx, b, size) ? b : NULL;
    set_size(ctx, b, size, b->size - size);
    return b;
}

static void *hand_out(hak_ctx *ctx, hk_big *b, hak_label label, hak_site site)
{
    b->cached = false;
    b->site = site;
    b->label = hk_label_clamp(label);
    list_add(&ctx->big.live, b);
    account(ctx, b);
    return b->p;
}

void *hk_big_alloc(hak_ctx *ctx, size_t align, size_t n, hak_label label, hak_site site, bool *zero)
{
    size_t size = hk_align_up(hk_max(n, HK_PAGE), HK_PAGE);
    align = hk_max(align, HK_PAGE);
    hk_big *b = take_cached(ctx, align, size, site);
    if (!b) {
        note_asked(ctx, size, size / 8);
        b = take_other(ctx, align, size);
    }
    *zero = !b;
    if (!b) {
        b = map_new(ctx, align, size);
        if (!b) return NULL;
        hk_big_enter(ctx->space, b);
    }
    b->grew = false;
    return hand_out(ctx, b, label, site);
}

bool hk_big_fits(const hak_ctx *ctx, size_t n)
{
    return cached_to_grow(ctx, hk_align_up(n, HK_PAGE));
}

void *hk_big_regrow(hak_ctx *ctx, size_t n, hak_label label, hak_site site)
{
    size_t size = hk_align_up(n, HK_PAGE);
    hk_big *b = cached_to_grow(ctx, size);
    bool zero;
    if (!b && (n <= COPIED_MOST || !ctx->space->os.remap)) return NULL;
    if (!b) return hk_big_alloc(ctx, HK_PAGE, n, label, site, &zero);
    take(ctx, b);
    b->grew = true;
    set_size(ctx, b, size, b->size - size);
    return hand_out(ctx, b, label, site);
}

void hk_big_free(hak_ctx *ctx, hk_big *b)
{
    list_remove(&ctx->big.live, b);
    discount(ctx, b);
    size_t keep = cache_limit(ctx), mapped = hk_big_mapped(b);
    if (b->room_purged || mapped > keep) {
        if (!b->room_purged) ctx->big.room -= b->room;
        if (!b->room_purged) note_missed(ctx, mapped);
        unmap(ctx, b);
        return;
    }
    set_size(ctx, b, mapped, 0);
    b->cached = true;
    list_add(&ctx->big.cached, b);
    hk_add(&ctx->big.cached_bytes, b->size);
    while (ctx->big.cached && hk_get(&ctx->big.cached_bytes) + ctx->big.room > keep)
        give_up_noted(ctx, oldest_cached(ctx));
}

size_t hk_big_purge(hak_ctx *ctx)
{
    size_t done = 0;
    for (hk_big *b = ctx->big.room ? ctx->big.live : NULL; b; b = b->next)
        done += give_up_room(ctx, b);
    while (ctx->big.cached) {
        done += ctx->big.cached->size;
        give_up(ctx, ctx->big.cached);
    }
    ctx->big.wish = 0;
    return done;
}

void hk_big_shrink(hak_ctx *ctx)
{
    ctx->big.wish = hk_min(ctx->big.wish, ctx->big.cache);
    while (hk_get(&ctx->big.cached_bytes) > cache_limit(ctx))
        give_up(ctx, oldest_cached(ctx));
}

/* Notes the time when it first sees the block unused. */
static bool unused_long(const hak_ctx *ctx, hk_big *b, uint64_t now_ns)
{
    if (b->unused_since == 0 || b->unused_since > now_ns) b->unused_since = now_ns;
    return now_ns - b->unused_since >= hk_get(&ctx->space->purge_ns);
}

void hk_big_tick(hak_ctx *ctx, uint64_t now_ns)
{
    for (hk_big *b = ctx->big.cached, *next; b; b = next) {
        next = b->next;
        if (!unused_long(ctx, b, now_ns)) continue;
        wish_less(ctx, b->size, 0);
        give_up(ctx, b);
    }
    for (hk_big *b = ctx->big.room ? ctx->big.live : NULL; b; b = b->next)
        if (b->room && unused_long(ctx, b, now_ns)) give_up_room(ctx, b);
}

static void resized(hak_ctx *ctx, hk_big *b, char *p, size_t size, size_t room)
{
    discount(ctx, b);
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
    resized(ctx, b, b->p, size, hk_big_mapped(b) - size);
    return true;
}

static char *remap(hak_ctx *ctx, hk_big *b, size_t size)
{
    size_t old = hk_big_mapped(b);
    hk_big_leave(ctx->space, b);
    char *p = hk_space_remap(ctx->space, b->p, old, size);
    if (p && size > old && wants_huge(ctx, size)) hk_space_huge(ctx->space, p, size);
    if (p) resized(ctx, b, p, size, 0);
    hk_big_enter(ctx->space, b);
    return p;
}

static char *lengthen(hak_ctx *ctx, hk_big *b, size_t size)
{
    size_t old = b->size, room = b->room, more = size - hk_big_mapped(b);
    /* If the charge were refused, hk_reclaim_charge would give up this very room. */
    if (room && !take_room(ctx, b, old + room)) return NULL;
    char *p = NULL;
    note_asked(ctx, size, 0);
    hk_big_yield(ctx, more, hk_space_peaks(ctx->space, more));
    if (hk_reclaim_charge(ctx, more)) {
        hk_magazines_yield(ctx, more);
        p = remap(ctx, b, size);
        if (!p) hk_refund(ctx, more);
    }
    if (!p && room) resized(ctx, b, b->p, old, room);
    return p;
}

void *hk_big_resize(hak_ctx *ctx, hk_big *b, size_t n)
{
    size_t size = hk_align_up(n, HK_PAGE), charged = b->room_purged ? b->size : hk_big_mapped(b);
    if (size > hk_big_mapped(b)) return lengthen(ctx, b, size);
    if (size >= b->size) return take_room(ctx, b, size) ? b->p : NULL;
    char *p = size > HK_RUN_MAX ? remap(ctx, b, size) : NULL;
    if (p) hk_uncharge(ctx, charged - size);
    return p;
}

void hk_big_destroy(hak_ctx *ctx)
{
    hk_big_purge(ctx);
    while (ctx->big.live) {
        hk_big *b = ctx->big.live;
        list_remove(&ctx->big.live, b);
        unmap(ctx, b);
    }
}

#include "heap/big_cache.h"

#include "base/patience.h"
#include "heap/account.h"

void hk_big_unmap(hak_ctx *ctx, hk_big *b)
{
    hk_big_leave(ctx->space, b);
    hk_space_unmap(ctx->space, b->p, hk_big_mapped(b));
    hk_uncharge(ctx, b->room_purged ? b->size : hk_big_mapped(b));
    hk_big_record_drop(ctx, b);
}

void hk_cached_take(hak_ctx *ctx, hk_big *b)
{
    HK_ASSERT(b->ctx == ctx && b->cached && b->room == 0 && hk_get(&ctx->big.cached_bytes) >= b->size);
    hk_big_list_remove(&ctx->big.cached, b);
    hk_sub(&ctx->big.cached_bytes, b->size);
}

hk_big *hk_cached_fit(hak_ctx *ctx, size_t align, size_t size, hak_site site)
{
    hk_big *best = NULL;
    for (hk_big *b = ctx->big.cached; b; b = b->next) {
        if (b->size < size || b->size - size > size / 8 || (uintptr_t)b->p & (align - 1)) continue;
        if (!best || (b->site == site) > (best->site == site) ||
            ((b->site == site) == (best->site == site) && b->size < best->size))
            best = b;
        if (best == b && b->site == site && b->size == size) break;
    }
    if (best) hk_cached_take(ctx, best);
    return best;
}

enum {
    REGROW_FROM = 256 << 10
}; /* a run that grows further is not copied again, if a block that grew is
      kept */

/* A block that grows in the place of another one may grow as far as that one did. */
hk_big *hk_cached_to_grow(const hak_ctx *ctx, size_t size)
{
    hk_big *best = NULL;
    for (hk_big *b = ctx->big.cached; b; b = b->next) {
        bool near = b->size / 8 <= size || (b->grew && size > REGROW_FROM);
        if (b->size >= size && near && (!best || b->size < best->size)) best = b;
    }
    return best;
}

/* It follows the heap, and grows when a block is asked for that was given up lately: a program that frees and
 * allocates the same sizes again and again would take a page fault for each page, every time. */
size_t hk_cached_limit(const hak_ctx *ctx)
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

static uint16_t grains(size_t size)
{
    return (uint16_t)hk_min(hk_align_up(size, MISSED_GRAIN) / MISSED_GRAIN, UINT16_MAX);
}

static bool suits(uint16_t missed, size_t size, size_t more)
{
    size_t n = (size_t)missed * MISSED_GRAIN;
    return n >= size && n - size < more + MISSED_GRAIN;
}

void hk_cached_asked(hak_ctx *ctx, size_t size, size_t more)
{
    if (suits(ctx->big.aged, size, more)) {
        ctx->big.patience = hk_patience_more(ctx->big.patience);
        ctx->big.aged = 0;
    }
    for (unsigned i = 0; i < HK_BIG_MISSED; i++) {
        uint16_t missed = ctx->big.missed[i];
        if (!suits(missed, size, more)) continue;
        ctx->big.missed[i] = 0;
        ctx->big.wish = hk_min(hk_cached_limit(ctx) + (size_t)missed * MISSED_GRAIN, wish_most(ctx));
        return;
    }
}

void hk_cached_missed(hak_ctx *ctx, size_t size)
{
    ctx->big.missed[ctx->big.missed_at++ % HK_BIG_MISSED] = grains(size);
}

static void drop_cached(hak_ctx *ctx, hk_big *b)
{
    hk_cached_take(ctx, b);
    hk_big_unmap(ctx, b);
}

static hk_big *oldest_cached(const hak_ctx *ctx)
{
    hk_big *b = ctx->big.cached;
    while (b->next)
        b = b->next;
    return b;
}

static void drop_noted(hak_ctx *ctx, hk_big *b)
{
    hk_cached_missed(ctx, b->size);
    drop_cached(ctx, b);
}

void hk_cached_wish_less(hak_ctx *ctx, size_t n, size_t least)
{
    if (ctx->big.wish > least) ctx->big.wish -= hk_min(ctx->big.wish - least, n);
}

void hk_cached_put(hak_ctx *ctx, hk_big *b, size_t keep)
{
    b->cached = true;
    hk_big_list_add(&ctx->big.cached, b);
    hk_add(&ctx->big.cached_bytes, b->size);
    while (ctx->big.cached && hk_get(&ctx->big.cached_bytes) + ctx->big.room > keep)
        drop_noted(ctx, oldest_cached(ctx));
}

#ifdef HAKMEM_ASSERT
size_t hk_bigs_charged(const hak_ctx *ctx)
{
    size_t sum = hk_get(&ctx->big.cached_bytes);
    for (const hk_big *b = ctx->big.live; b; b = b->next)
        sum += b->room_purged ? b->size : hk_big_mapped(b);
    return sum;
}
#endif

/* Returns bytes. */
static size_t give_up_room(hak_ctx *ctx, hk_big *b)
{
    if (b->room == 0 || b->room_purged) return 0;
    HK_ASSERT(b->room % HK_PAGE == 0 && ctx->big.room >= b->room);
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
        hk_cached_wish_less(ctx, oldest->size, ctx->big.cache);
        drop_noted(ctx, oldest);
    }
    for (hk_big *b = peak ? ctx->big.live : NULL; b && ctx->big.room > keep; b = b->next) {
        if (b->room > ctx->big.grown) continue;
        ctx->big.grown -= give_up_room(ctx, b);
    }
    if (!peak || ctx->big.room <= keep) ctx->big.grown = 0;
}

hk_big *hk_cached_nearest(const hak_ctx *ctx, size_t size)
{
    hk_big *best = NULL;
    for (hk_big *b = ctx->big.cached; b; b = b->next) {
        if (b->size / 2 > size) continue;
        bool fits = b->size >= size, best_fits = best && best->size >= size;
        if (!best || fits > best_fits || (fits == best_fits && (b->size < best->size) == fits)) best = b;
    }
    return best;
}

size_t hk_big_purge(hak_ctx *ctx)
{
    size_t done = 0;
    for (hk_big *b = ctx->big.room ? ctx->big.live : NULL; b; b = b->next)
        done += give_up_room(ctx, b);
    while (ctx->big.cached) {
        done += ctx->big.cached->size;
        drop_cached(ctx, ctx->big.cached);
    }
    ctx->big.wish = 0;
    return done;
}

void hk_big_shrink(hak_ctx *ctx)
{
    ctx->big.wish = hk_min(ctx->big.wish, ctx->big.cache);
    while (hk_get(&ctx->big.cached_bytes) > hk_cached_limit(ctx))
        drop_cached(ctx, oldest_cached(ctx));
}

/* Notes the time when it first sees the block unused. */
static bool unused_long(const hak_ctx *ctx, hk_big *b, uint64_t now_ns)
{
    if (b->unused_since == 0 || b->unused_since > now_ns) b->unused_since = now_ns;
    return (now_ns - b->unused_since) / hk_get(&ctx->space->purge_ns) > ctx->big.patience;
}

void hk_big_tick(hak_ctx *ctx, uint64_t now_ns)
{
    for (hk_big *b = ctx->big.cached, *next; b; b = next) {
        next = b->next;
        if (!unused_long(ctx, b, now_ns)) continue;
        if (ctx->big.aged) ctx->big.patience = hk_patience_less(ctx->big.patience);
        ctx->big.aged = grains(b->size);
        hk_cached_wish_less(ctx, b->size, 0);
        drop_cached(ctx, b);
    }
    for (hk_big *b = ctx->big.room ? ctx->big.live : NULL; b; b = b->next)
        if (b->room && unused_long(ctx, b, now_ns)) give_up_room(ctx, b);
}

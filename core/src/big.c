#include "big.h"

#include "label.h"
#include "slab.h"

static hk_big **bucket_of(const hak_space *s, const void *p)
{
    uint64_t h = (uint64_t)((uintptr_t)p >> 12) * 0x9E3779B97F4A7C15u;
    return &s->big[h >> (64 - 12)];
}
_Static_assert(HK_BIG_BUCKETS == 1 << 12, "bucket_of takes 12 bits");

static void hash_add(hak_space *s, hk_big *b)
{
    hk_lock_take(&s->lock);
    hk_big **at = bucket_of(s, b->p);
    b->chain = *at;
    *at = b;
    size_t start = (uintptr_t)b->p;
    if (start < hk_get(&s->big_low)) hk_set(&s->big_low, start);
    if (start + b->size > hk_get(&s->big_high)) hk_set(&s->big_high, start + b->size);
    hk_lock_drop(&s->lock);
}

static void hash_remove(hak_space *s, hk_big *b)
{
    hk_lock_take(&s->lock);
    hk_big **at = bucket_of(s, b->p);
    while (*at != b)
        at = &(*at)->chain;
    *at = b->chain;
    hk_lock_drop(&s->lock);
}

/* Most pointers that are asked for are of others, and far away. */
static bool may_be_big(const hak_space *s, const void *p)
{
    return (uintptr_t)p >= hk_get(&s->big_low) && (uintptr_t)p < hk_get(&s->big_high);
}

static hk_big *chain_find(const hak_space *s, const void *p)
{
    hk_big *b = *bucket_of(s, p);
    while (b && b->p != p)
        b = b->chain;
    return b;
}

hk_big *hk_big_at(hak_space *s, const void *p)
{
    if ((uintptr_t)p & (HK_PAGE - 1) || !may_be_big(s, p)) return NULL;
    hk_lock_take(&s->lock);
    hk_big *b = chain_find(s, p);
    hk_lock_drop(&s->lock);
    return b;
}

hk_big *hk_big_find(const hak_ctx *ctx, const void *p)
{
    hk_big *b = hk_big_at(ctx->space, p);
    return b && b->ctx == ctx ? b : NULL;
}

hak_ctx *hk_big_owner(hak_space *s, const void *p)
{
    if (!may_be_big(s, p)) return NULL;
    hk_lock_take(&s->lock);
    hk_big *found = chain_find(s, p);
    for (unsigned i = 0; i < HK_BIG_BUCKETS && !found; i++)
        for (hk_big *b = s->big[i]; b && !found; b = b->chain)
            if ((size_t)((const char *)p - b->p) < b->size) found = b;
    hak_ctx *owner = found && !found->cached ? found->ctx : NULL;
    hk_lock_drop(&s->lock);
    return owner;
}

hk_big *hk_big_containing(const hak_ctx *ctx, const void *p)
{
    hk_big *b = ctx->bigs;
    while (b && (uintptr_t)p - (uintptr_t)b->p >= b->size)
        b = b->next;
    return b;
}

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
    hk_add(&ctx->big_bytes, b->size);
    hk_add(&ctx->big_blocks, 1);
}

static void discount(hak_ctx *ctx, const hk_big *b)
{
    hk_count_out(ctx, b->size, 1);
    hk_sub(&ctx->big_bytes, b->size);
    hk_sub(&ctx->big_blocks, 1);
}

/* The block that this site gave back, else the tightest fit that wastes at most an eighth. */
static hk_big *take_cached(hak_ctx *ctx, size_t align, size_t size, hak_site site)
{
    hk_big *best = NULL;
    for (hk_big *b = ctx->cached; b; b = b->next) {
        if (b->size < size || b->size - size > size / 8 || (uintptr_t)b->p & (align - 1)) continue;
        if (!best || (b->site == site) > (best->site == site) ||
            ((b->site == site) == (best->site == site) && b->size < best->size))
            best = b;
        if (best == b && b->site == site && b->size == size) break;
    }
    if (!best) return NULL;
    list_remove(&ctx->cached, best);
    hk_sub(&ctx->cached_bytes, best->size);
    return best;
}

static hk_big *record_new(hak_ctx *ctx)
{
    hk_big *b = ctx->spare;
    if (b) {
        ctx->spare = b->next;
        return b;
    }
    return hk_meta_alloc(ctx, sizeof *b);
}

static void record_drop(hak_ctx *ctx, hk_big *b)
{
    b->next = ctx->spare;
    ctx->spare = b;
}

/* What the cache may hold follows the heap, and grows when a block is asked for that it gave up lately. */
static size_t cache_limit(const hak_ctx *ctx)
{
    size_t live = hk_get(&ctx->live_bytes) / 4;
    return hk_min(ctx->big_cache, hk_max(hk_max(live, ctx->big_cache / 4), ctx->big_wish));
}

static void note_asked(hak_ctx *ctx, size_t size)
{
    for (unsigned i = 0; i < HK_BIG_MISSED; i++) {
        if (ctx->big_missed[i] != size) continue;
        ctx->big_missed[i] = 0;
        ctx->big_wish = hk_min(cache_limit(ctx) + size, ctx->big_cache);
        return;
    }
}

static void unmap(hak_ctx *ctx, hk_big *b)
{
    hash_remove(ctx->space, b);
    hk_space_unmap(ctx->space, b->p, b->size);
    hk_uncharge(ctx, b->size);
    record_drop(ctx, b);
}

static void give_up(hak_ctx *ctx, hk_big *b)
{
    list_remove(&ctx->cached, b);
    hk_sub(&ctx->cached_bytes, b->size);
    unmap(ctx, b);
}

static hk_big *oldest_cached(const hak_ctx *ctx)
{
    hk_big *b = ctx->cached;
    while (b->next)
        b = b->next;
    return b;
}

/* It is remembered, in case it is asked for again. */
static void give_up_noted(hak_ctx *ctx, hk_big *b)
{
    ctx->big_missed[ctx->big_missed_at++ % HK_BIG_MISSED] = b->size;
    give_up(ctx, b);
}

void hk_big_yield(hak_ctx *ctx, size_t n)
{
    ctx->big_grown += n;
    while (hk_get(&ctx->cached_bytes) > ctx->big_wish) {
        hk_big *oldest = oldest_cached(ctx);
        if (oldest->size > ctx->big_grown) return;
        ctx->big_grown -= oldest->size;
        give_up_noted(ctx, oldest);
    }
    ctx->big_grown = 0;
}

static bool wants_huge(const hak_ctx *ctx, size_t size)
{
    return size >= 2 * HK_CHUNK && hk_space_wants_huge(ctx->space, hk_get(&ctx->committed));
}

static hk_big *map_new(hak_ctx *ctx, size_t align, size_t size)
{
    hak_space *s = ctx->space;
    hk_big *b = s->buffer_only ? NULL : record_new(ctx);
    if (!b) return NULL;
    if (!atomic_load(&s->big_ready)) {
        if (s->extent.owned && hk_space_commit(s, s->big, HK_BIG_BUCKETS * sizeof *s->big) != 0) {
            record_drop(ctx, b);
            return NULL;
        }
        atomic_store(&s->big_ready, true);
    }
    hk_big_yield(ctx, size);
    if (hk_charge(ctx, size)) {
        hk_magazines_yield(ctx, size);
        bool huge = wants_huge(ctx, size);
        b->p = hk_space_map(s, size, huge ? hk_max(align, HK_CHUNK) : align);
        if (b->p && huge) hk_space_huge(s, b->p, size);
        if (b->p) {
            b->size = size;
            b->ctx = ctx;
            return b;
        }
        hk_refund(ctx, size);
    }
    record_drop(ctx, b);
    return NULL;
}

void *hk_big_alloc(hak_ctx *ctx, size_t align, size_t n, hak_label label, hak_site site, bool *zero)
{
    size_t size = hk_align_up(hk_max(n, HK_PAGE), HK_PAGE);
    align = hk_max(align, HK_PAGE);
    hk_big *b = take_cached(ctx, align, size, site);
    *zero = !b;
    if (!b) {
        note_asked(ctx, size);
        b = map_new(ctx, align, size);
        if (!b) return NULL;
        hash_add(ctx->space, b);
    }
    b->cached = false;
    b->site = site;
    b->label = hk_label_clamp(label);
    list_add(&ctx->bigs, b);
    account(ctx, b);
    return b->p;
}

void hk_big_free(hak_ctx *ctx, hk_big *b)
{
    list_remove(&ctx->bigs, b);
    discount(ctx, b);
    if (b->size > ctx->big_cache) {
        unmap(ctx, b);
        return;
    }
    b->cached = true;
    b->idle_since = 0;
    list_add(&ctx->cached, b);
    hk_add(&ctx->cached_bytes, b->size);
    size_t keep = cache_limit(ctx);
    while (hk_get(&ctx->cached_bytes) > keep)
        give_up_noted(ctx, oldest_cached(ctx));
}

size_t hk_big_purge(hak_ctx *ctx)
{
    size_t done = 0;
    while (ctx->cached) {
        done += ctx->cached->size;
        give_up(ctx, ctx->cached);
    }
    return done;
}

void hk_big_tick(hak_ctx *ctx, uint64_t now_ns)
{
    for (hk_big *b = ctx->cached, *next; b; b = next) {
        next = b->next;
        if (b->idle_since == 0 || b->idle_since > now_ns) {
            b->idle_since = now_ns;
        } else if (now_ns - b->idle_since >= ctx->space->idle_ns) {
            give_up(ctx, b);
        }
    }
}

void *hk_big_resize(hak_ctx *ctx, hk_big *b, size_t n)
{
    size_t size = hk_align_up(n, HK_PAGE), old = b->size;
    if (size == old) return b->p;
    if (size > old && !hk_charge(ctx, size - old)) return NULL;
    if (size > old) hk_magazines_yield(ctx, size - old);
    hash_remove(ctx->space, b);
    char *p = hk_space_remap(ctx->space, b->p, old, size);
    if (p) {
        if (size > old && wants_huge(ctx, size)) hk_space_huge(ctx->space, p, size);
        discount(ctx, b);
        b->p = p;
        b->size = size;
        account(ctx, b);
    }
    hash_add(ctx->space, b);
    if (p && size < old) hk_uncharge(ctx, old - size);
    if (!p && size > old) hk_refund(ctx, size - old);
    return p;
}

void hk_big_destroy(hak_ctx *ctx)
{
    hk_big_purge(ctx);
    while (ctx->bigs) {
        hk_big *b = ctx->bigs;
        list_remove(&ctx->bigs, b);
        unmap(ctx, b);
    }
}

void hk_big_unmap_all(hak_space *s)
{
    if (!s->big_ready) return;
    for (unsigned i = 0; i < HK_BIG_BUCKETS; i++)
        for (hk_big *b = s->big[i]; b; b = b->chain)
            hk_space_unmap(s, b->p, b->size);
}

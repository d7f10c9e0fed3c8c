/* Blocks with mappings of their own, by address. */
#include "heap/big.h"

static hk_big **bucket_of(const hak_space *s, const void *p)
{
    uint64_t h = (uint64_t)((uintptr_t)p >> 12) * 0x9E3779B97F4A7C15u;
    return &s->big[h >> (64 - 12)];
}
_Static_assert(HK_BIG_BUCKETS == 1 << 12, "bucket_of takes 12 bits");

void hk_big_enter(hak_space *s, hk_big *b)
{
    hk_lock_take(&s->lock);
    hk_big **at = bucket_of(s, b->p);
    b->hash_next = *at;
    *at = b;
    size_t start = (uintptr_t)b->p;
    if (start < hk_get(&s->big_low)) hk_set(&s->big_low, start);
    if (start + hk_big_mapped(b) > hk_get(&s->big_high)) hk_set(&s->big_high, start + hk_big_mapped(b));
    hk_lock_drop(&s->lock);
}

void hk_big_leave(hak_space *s, hk_big *b)
{
    hk_lock_take(&s->lock);
    hk_big **at = bucket_of(s, b->p);
    while (*at != b)
        at = &(*at)->hash_next;
    *at = b->hash_next;
    hk_lock_drop(&s->lock);
}

/* Most pointers that are asked for are of others, and far away. */
static bool may_be_big(const hak_space *s, const void *p)
{
    return (uintptr_t)p >= hk_get(&s->big_low) && (uintptr_t)p < hk_get(&s->big_high);
}

static hk_big *bucket_find(const hak_space *s, const void *p)
{
    hk_big *b = *bucket_of(s, p);
    while (b && b->p != p)
        b = b->hash_next;
    return b;
}

hk_big *hk_big_at(hak_space *s, const void *p)
{
    if ((uintptr_t)p & (HK_PAGE - 1) || !may_be_big(s, p)) return NULL;
    hk_lock_take(&s->lock);
    hk_big *b = bucket_find(s, p);
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
    hk_big *found = bucket_find(s, p);
    for (unsigned i = 0; i < HK_BIG_BUCKETS && !found; i++)
        for (hk_big *b = s->big[i]; b && !found; b = b->hash_next)
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

void hk_big_unmap_all(hak_space *s)
{
    if (!s->big_ready) return;
    for (unsigned i = 0; i < HK_BIG_BUCKETS; i++)
        for (hk_big *b = s->big[i]; b; b = b->hash_next)
            hk_space_unmap(s, b->p, hk_big_mapped(b));
}

/* Charges a context: against its limit and its quota; and settles the account at the end of its space. */
#include "heap/account.h"

bool hk_charge(hak_ctx *ctx, size_t n)
{
    size_t now = hk_get(&ctx->account.committed), hard = hk_get(&ctx->account.hard),
           soft = hk_get(&ctx->account.soft);
    if (hard && (now >= hard || n > hard - now)) return false;
    size_t before = 0;
    if (ctx->account.quota && !hk_quota_charge(ctx->account.quota, n, &before)) return false;
    HK_ASSERT(now + n >= now && (!hard || now + n <= hard));
    hk_set(&ctx->account.committed, now + n);
    if (HK_UNLIKELY(ctx->role != HK_LOCAL)) {
        soft = hk_get(&hk_whole(ctx)->account.soft);
        /* The first thread that comes by reports it: this one may not allocate again. */
        if (soft && before < soft && before + n >= soft) atomic_store(&ctx->account.quota->crossed, true);
    } else if (soft && now < soft && now + n >= soft) {
        ctx->account.pressure = true;
    }
    return true;
}

void hk_uncharge(hak_ctx *ctx, size_t n)
{
    HK_ASSERT(hk_get(&ctx->account.committed) >= n);
    hk_sub(&ctx->account.committed, n);
    hk_quota_uncharge(ctx->account.quota, n);
}

void hk_refund(hak_ctx *ctx, size_t n)
{
    HK_ASSERT(hk_get(&ctx->account.committed) >= n);
    hk_sub(&ctx->account.committed, n);
    hk_quota_refund(ctx->account.quota, n);
    /* What was refused did not cross anything. */
    if (hk_get(&ctx->account.committed) < hk_get(&ctx->account.soft)) ctx->account.pressure = false;
}

bool hk_packed_scarce(const hak_ctx *ctx)
{
    size_t hard, left = hk_account_room(ctx, &hard);
    return hard && left < hk_min(hard / 4, HK_SLABS_FREE);
}

void hk_account_begin(hak_ctx *ctx)
{
    hak_space *s = ctx->space;
    if (!ctx->account.quota) return;
    hk_lock_take(&s->lock);
    ctx->account.next = s->charged;
    if (s->charged) s->charged->account.prev = ctx;
    s->charged = ctx;
    hk_lock_drop(&s->lock);
}

void hk_account_end(hak_ctx *ctx)
{
    hak_space *s = ctx->space;
    if (!ctx->account.quota) return;
    hk_lock_take(&s->lock);
    HK_ASSERT((ctx->account.prev ? ctx->account.prev->account.next : s->charged) == ctx);
    HK_ASSERT(!ctx->account.next || ctx->account.next->account.prev == ctx);
    if (ctx->account.prev) ctx->account.prev->account.next = ctx->account.next;
    else s->charged = ctx->account.next;
    if (ctx->account.next) ctx->account.next->account.prev = ctx->account.prev;
    hk_lock_drop(&s->lock);
    hk_quota_uncharge(ctx->account.quota, hk_get(&ctx->account.committed));
}

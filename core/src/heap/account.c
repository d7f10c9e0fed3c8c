/* What is charged to a context: its limit, its quota, and whose account a space settles at its end. */
#include "heap/ctx.h"

bool hk_charge(hak_ctx *ctx, size_t n)
{
    size_t now = hk_get(&ctx->committed), hard = hk_get(&ctx->hard), soft = hk_get(&ctx->soft);
    if (hard && (now >= hard || n > hard - now)) return false;
    size_t before = 0;
    if (ctx->quota && !hk_quota_charge(ctx->quota, n, &before)) return false;
    hk_set(&ctx->committed, now + n);
    if (HK_UNLIKELY(ctx->role == HK_HEAP)) {
        soft = hk_get(&ctx->root->soft);
        /* Whichever thread comes first tells it: this one may not come again. */
        if (soft && before < soft && before + n >= soft) atomic_store(ctx->member->crossed, true);
    } else if (soft && now < soft && now + n >= soft) {
        ctx->pressure = true;
    }
    return true;
}

void hk_uncharge(hak_ctx *ctx, size_t n)
{
    hk_sub(&ctx->committed, n);
    hk_quota_uncharge(ctx->quota, n);
}

void hk_refund(hak_ctx *ctx, size_t n)
{
    hk_sub(&ctx->committed, n);
    hk_quota_refund(ctx->quota, n);
}

void hk_account_begin(hak_ctx *ctx)
{
    hak_space *s = ctx->space;
    if (!ctx->quota) return;
    hk_lock_take(&s->lock);
    ctx->charged_next = s->charged;
    if (s->charged) s->charged->charged_prev = ctx;
    s->charged = ctx;
    hk_lock_drop(&s->lock);
}

void hk_account_end(hak_ctx *ctx)
{
    hak_space *s = ctx->space;
    if (!ctx->quota) return;
    hk_lock_take(&s->lock);
    if (ctx->charged_prev) ctx->charged_prev->charged_next = ctx->charged_next;
    else s->charged = ctx->charged_next;
    if (ctx->charged_next) ctx->charged_next->charged_prev = ctx->charged_prev;
    hk_lock_drop(&s->lock);
    hk_quota_uncharge(ctx->quota, hk_get(&ctx->committed));
}

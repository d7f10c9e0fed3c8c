/* Limits of a context, and who is told that the soft one is crossed. */
#include "api/limits.h"

#include "shared/thread_heap.h"

void hk_pressure(hak_ctx *ctx)
{
    hak_ctx *root = hk_root(ctx);
    hk_team *t = root->team;
    ctx->account.pressure = false;
    if (t && !atomic_exchange(&t->pressure, false)) return;
    if (t) hk_lock_take(&t->lock);
    hak_pressure_fn *fn = root->host.on_pressure;
    void *user = root->host.pressure_user;
    if (t) hk_lock_drop(&t->lock);
    if (fn)
        fn(root, user, t ? atomic_load(&t->account.used) : hk_get(&ctx->account.committed),
           hk_get(&root->account.soft));
}

int hak_limit(hak_ctx *ctx, size_t soft, size_t hard, hak_pressure_fn *fn, void *user)
{
    ctx = hk_root(ctx);
    if (hard && soft > hard) return -1;
    if (ctx->team) hk_lock_take(&ctx->team->lock);
    hk_set(&ctx->account.soft, soft);
    hk_set(&ctx->account.hard, hard);
    if (ctx->team) atomic_store(&ctx->team->account.hard, hard);
    ctx->host.on_pressure = fn;
    ctx->host.pressure_user = user;
    ctx->account.pressure = false;
    if (ctx->team) atomic_store(&ctx->team->pressure, false);
    if (ctx->team) hk_lock_drop(&ctx->team->lock);
    return 0;
}

/* Sets the limits of a context, and calls the host back when it passes the soft limit. */
#include "api/limits.h"

#include "shared/thread_heap.h"

void hk_pressure(hak_ctx *ctx)
{
    hak_ctx *whole = hk_whole(ctx);
    hk_heaps *heaps = whole->heaps;
    ctx->account.pressure = false;
    if (heaps && !atomic_exchange(&heaps->account.crossed, false)) return;
    hk_whole_lock(whole);
    hak_pressure_fn *fn = whole->host.on_pressure;
    void *user = whole->host.pressure_user;
    hk_whole_unlock(whole);
    if (fn)
        fn(whole, user, heaps ? atomic_load(&heaps->account.used) : hk_get(&ctx->account.committed),
           hk_get(&whole->account.soft));
}

int hak_limit(hak_ctx *ctx, size_t soft, size_t hard, hak_pressure_fn *fn, void *user)
{
    ctx = hk_whole(ctx);
    if (hard && soft > hard) return -1;
    hk_whole_lock(ctx);
    bool other = soft != hk_get(&ctx->account.soft); /* nobody is told of the old one any more */
    hk_set(&ctx->account.soft, soft);
    hk_set(&ctx->account.hard, hard);
    if (ctx->heaps) atomic_store(&ctx->heaps->account.hard, hard);
    ctx->host.on_pressure = fn;
    ctx->host.pressure_user = user;
    if (other) ctx->account.pressure = false;
    if (other && ctx->heaps) atomic_store(&ctx->heaps->account.crossed, false);
    hk_whole_unlock(ctx);
    return 0;
}

hak_pressure_fn *hak_limit_callback(const hak_ctx *ctx, void **user)
{
    hak_ctx *whole = hk_whole(ctx);
    hk_whole_lock(whole);
    hak_pressure_fn *fn = whole->host.on_pressure;
    if (user) *user = whole->host.pressure_user;
    hk_whole_unlock(whole);
    return fn;
}

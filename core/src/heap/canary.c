#include "heap/canary.h"

#include "heap/block.h"

static unsigned char byte_at(const hak_ctx *ctx, const char *at)
{
    uint64_t word = ((uintptr_t)at & ~(uintptr_t)7) ^ hk_whole(ctx)->watch->canary;
    word *= UINT64_C(0x9E3779B97F4A7C15);
    return (unsigned char)((word >> 32) >> ((uintptr_t)at & 3) * 8);
}

void hk_canary_write(const hak_ctx *ctx, const void *p, size_t n)
{
    char *start = (char *)(uintptr_t)p, *end = start + hk_block_size(ctx, p);
    for (char *at = start + hk_max(n, 1); at < end; at++)
        *at = (char)byte_at(ctx, at);
}

bool hk_canary_whole(const hak_ctx *ctx, const void *p)
{
    size_t n = hk_asked(ctx, p);
    if (n >= HK_HELD) return true;
    const char *end = (const char *)p + hk_block_size(ctx, p);
    for (const char *at = (const char *)p + hk_max(n, 1); at < end; at++)
        if ((unsigned char)*at != byte_at(ctx, at)) return false;
    return true;
}

size_t hk_canary_usable(const hak_ctx *ctx, const void *p, size_t size)
{
    size_t n = size ? hk_asked(ctx, p) : HAK_NONE;
    if (n == HAK_NONE) return size;
    if (n == HK_HELD) return 0;
    return ctx->debug & HAK_DEBUG_CANARY ? hk_max(n, 1) : size;
}

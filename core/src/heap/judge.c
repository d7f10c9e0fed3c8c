#include "heap/judge.h"

void hk_found_wrong(const hak_ctx *ctx, hk_wrong what, const void *p)
{
    ctx->whole->judge(ctx, what, p);
}

// Every installed header is good C++ by itself; the functions have C linkage.
#include HEADER

#include <hakmem/hakmem.h>

int main()
{
    hak_ctx *ctx = hak_ctx_new(nullptr, nullptr);
    if (!ctx) return 1;
    void *p = hak_alloc(ctx, 100);
    const bool ok = p && hak_owns(ctx, p) && hak_usable_size(ctx, p) >= 100;
    hak_free(ctx, p);
    hak_ctx_destroy(ctx);
    return ok ? 0 : 1;
}

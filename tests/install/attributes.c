/* What hakmem.h says to compilers of blocks: their size, their alignment, and that a result which nobody uses
 * is a leak. With LEAK the last is broken, and a compiler that warns of unused results must say so. */
#include <hakmem/hakmem.h>

#include <stdio.h>

static int wrong;

static void see(const char *what, size_t size, size_t expected)
{
    if (size == expected) return;
    printf("%s: the compiler takes the block for one of %zu bytes, not %zu\n", what, size, expected);
    wrong = 1;
}

#define SEE(call, bytes)                                                                                     \
    do {                                                                                                     \
        void *block = call;                                                                                  \
        see(#call, __builtin_object_size(block, 0), bytes);                                                  \
    } while (0)

/* The alignment is known if the compiler drops the test. */
static int aligned(hak_ctx *ctx)
{
    char *p = hak_aligned_alloc(ctx, 256, 10);
    return __builtin_constant_p(((uintptr_t)p & 255) == 0);
}

int main(void)
{
    hak_ctx *ctx = hak_ctx_new(NULL, NULL);
    if (!ctx) return 2;
#ifdef LEAK
    hak_alloc(ctx, 8);
#endif
    SEE(hak_alloc(ctx, 40), 40);
    SEE(hak_alloc_cs(ctx, 41, 0, 0), 41);
    SEE(hak_calloc(ctx, 3, 14), 42);
    SEE(hak_calloc_cs(ctx, 4, 11, 0, 0), 44);
    SEE(hak_aligned_alloc(ctx, 64, 100), 100);
    SEE(hak_aligned_alloc_cs(ctx, 64, 101, 0, 0), 101);
    SEE(hak_aligned_calloc(ctx, 64, 2, 51), 102);
    SEE(hak_aligned_calloc_cs(ctx, 64, 2, 52, 0, 0), 104);
    SEE(hak_realloc(ctx, NULL, 50), 50);
    SEE(hak_realloc_cs(ctx, NULL, 51, 0, 0), 51);
    SEE(hak_realloc_sized(ctx, NULL, HAK_NONE, 52), 52);
    SEE(hak_realloc_sized_cs(ctx, NULL, HAK_NONE, 53, 0, 0), 53);
    SEE(hak_aligned_realloc(ctx, NULL, 64, 54), 54);
    SEE(hak_aligned_realloc_cs(ctx, NULL, 64, 55, 0, 0), 55);
    if (!aligned(ctx)) {
        printf("the compiler does not know how a block is aligned\n");
        wrong = 1;
    }
    hak_ctx_destroy(ctx);
    return wrong;
}

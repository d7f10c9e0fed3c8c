/* A host that asks the compiler for tokens, for test_tokens.py: no option of the compiler is needed. Prints the
 * labels of three blocks. */
#include <hakmem/token.h>

#include <stdio.h>

struct item {
    struct item *next;
    int number;
};

static hak_tokens tokens;

#define NEW(ctx, T, n)                                                                                       \
    ((T *)hak_alloc_cs(ctx, (n) * sizeof(T), hak_token_label(&tokens, ctx, HAK_TOKEN((n) * sizeof(T))),      \
                       HAK_CALLSITE()))

int main(void)
{
    hak_ctx *ctx = hak_ctx_new(NULL, NULL);
    struct item *items = NEW(ctx, struct item, 10);
    double *numbers = NEW(ctx, double, 4);
    struct item *again = NEW(ctx, struct item, 1);
    printf("%s, %s, %s\n", hak_label_name(ctx, hak_label_of(ctx, items)),
           hak_label_name(ctx, hak_label_of(ctx, numbers)), hak_label_name(ctx, hak_label_of(ctx, again)));
    hak_ctx_destroy(ctx);
    return 0;
}

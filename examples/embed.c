/* A host with one heap of its own: labels, a limit, and what the heap holds.
 *
 *     cc embed.c $(pkg-config --cflags --libs hakmem) -o embed
 */
#include <hakmem/hakmem.h>

#include <stdio.h>

#define ROWS 1000

static void print_labels(const hak_ctx *ctx)
{
    hak_label_info info[8];
    int count = hak_labels_stats(ctx, info, 8);
    for (int i = 0; i < count && i < 8; i++)
        printf("  %-10s %9zu bytes in %zu blocks\n", info[i].label ? info[i].name : "(none)",
               info[i].live_bytes, info[i].live_blocks);
}

int main(void)
{
    hak_ctx *ctx = hak_ctx_new(NULL, NULL);
    if (!ctx) {
        fprintf(stderr, "embed: no memory for a context\n");
        return 1;
    }
    hak_label names = hak_label_define(ctx, "names");
    hak_label rows = hak_label_define(ctx, "rows");

    static char *table[ROWS];
    for (int i = 0; i < ROWS; i++) {
        table[i] = hak_alloc_cs(ctx, 200, rows, HAK_CALLSITE());
        if (!table[i] || !hak_alloc_cs(ctx, 24, names, HAK_CALLSITE())) return 1;
    }
    for (int i = 0; i < ROWS; i += 2)
        hak_free(ctx, table[i]);

    hak_stats stats = {.size = sizeof stats};
    hak_ctx_stats(ctx, &stats);
    printf("%zu bytes live, %zu committed, by label:\n", stats.live_bytes, stats.committed_bytes);
    print_labels(ctx);

    /* The limit is on committed memory: 1 MiB more than now. Past it an allocation is NULL, no more. */
    hak_limit(ctx, 0, stats.committed_bytes + (1 << 20), NULL, NULL);
    size_t got = 0;
    while (hak_alloc_cs(ctx, 10000, rows, HAK_CALLSITE()))
        got += 10000;
    hak_ctx_stats(ctx, &stats);
    printf("then %zu bytes more until the limit: %zu committed of %zu\n", got, stats.committed_bytes,
           stats.hard_limit);

    hak_ctx_destroy(ctx); /* frees every block */
    return got > 0 && stats.committed_bytes <= stats.hard_limit ? 0 : 1;
}

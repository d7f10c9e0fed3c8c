/* density [LABELS]: how dense small heaps are, and what a limit leaves: resident bytes for a live byte by
 * live size, and live bytes over the limit at the first NULL, the mean and the least of 40 seeds, fewer from
 * 4 MiB on. One context each, blocks written as a whole. With LABELS, any text, every block has one of two
 * labels. */
#include <hakmem/hakmem.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCKS = 1 << 20, KINDS = 3 };

static const size_t LIVE[] = {32, 64, 128, 256, 512, 1024, 2048, 4096, 16384};
static const size_t LIMITS[] = {128, 256, 512, 1024, 2048, 4096, 16384};
static const char *const KIND[KINDS] = {"16..515", "16..215, 1 % to 20,000", "16..56"};
static const char *const NAMES[] = {"a", "b"};

static struct {
    char *p;
    size_t n;
} blocks[BLOCKS];
static size_t count, live;
static uint64_t state;

static size_t below(size_t n)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (size_t)(state % n);
}

static size_t size_of(int kind)
{
    if (kind == 0) return 16 + below(500);
    if (kind == 1) return below(100) ? 16 + below(200) : 216 + below(19785);
    return 16 + 8 * below(6);
}

static size_t anonymous(void)
{
    char line[200];
    size_t kib = 0;
    FILE *f = fopen("/proc/self/smaps_rollup", "r");
    while (f && fgets(line, sizeof line, f))
        if (sscanf(line, "Anonymous: %zu", &kib) == 1) break;
    if (f) fclose(f);
    return kib << 10;
}

static void seed(unsigned i)
{
    state = 88172645463325252 + i * UINT64_C(0x9E3779B97F4A7C15);
}

static int add(hak_ctx *ctx, int kind, int labelled)
{
    size_t n = size_of(kind);
    char *p = hak_alloc_cs(ctx, n, (hak_label)(labelled ? 1 + count % 2 : 0), 0);
    if (!p || count == BLOCKS) return 0;
    memset(p, 1, n);
    blocks[count].p = p;
    blocks[count++].n = n;
    live += n;
    return 1;
}

static void drop_one(hak_ctx *ctx)
{
    size_t i = below(count);
    hak_free(ctx, blocks[i].p);
    live -= blocks[i].n;
    blocks[i] = blocks[--count];
}

/* limit 0: until `most` bytes are live, and resident bytes for each. Else until NULL, and live bytes over the
 * limit. */
static double run(int kind, size_t most, size_t limit, int churn, int labelled)
{
    hak_options options = HAK_OPTIONS_INIT;
    if (labelled) {
        options.labels = NAMES;
        options.label_count = 2;
    }
    hak_space *space = hak_space_new(NULL);
    size_t before = anonymous();
    hak_ctx *ctx = hak_ctx_new(space, &options);
    if (!ctx) exit(1);
    hak_limit(ctx, 0, limit, NULL, NULL);
    for (count = live = 0; limit || live < most;) {
        if (churn && count > 50 && below(3) == 0) drop_one(ctx);
        else if (!add(ctx, kind, labelled)) break;
    }
    double ratio = limit ? (double)live / (double)limit : (double)(anonymous() - before) / (double)live;
    hak_space_delete(space);
    return ratio;
}

static void limits(int churn, int labelled, int kind)
{
    enum { SEEDS = 40 };
    double least[sizeof LIMITS / sizeof *LIMITS];
    printf("\n%-26s", KIND[kind]);
    for (size_t i = 0; i < sizeof LIMITS / sizeof *LIMITS; i++) {
        unsigned seeds = LIMITS[i] < 4096 ? SEEDS : SEEDS / 8;
        double sum = 0;
        least[i] = 1;
        for (unsigned k = 0; k < seeds; k++) {
            seed(k);
            double share = run(kind, 0, LIMITS[i] << 10, churn, labelled);
            sum += share;
            if (share < least[i]) least[i] = share;
        }
        printf("%7.2f", sum / seeds);
    }
    printf("\n%-26s", "  least");
    for (size_t i = 0; i < sizeof LIMITS / sizeof *LIMITS; i++)
        printf("%7.2f", least[i]);
}

int main(int argc, char **argv)
{
    (void)argv;
    int labelled = argc > 1;
    memset(blocks, 1, sizeof blocks);
    printf("%-26s", "resident / live");
    for (size_t i = 0; i < sizeof LIVE / sizeof *LIVE; i++)
        printf("%6zuK", LIVE[i]);
    for (int kind = 0; kind < KINDS; kind++) {
        printf("\n%-26s", KIND[kind]);
        for (size_t i = 0; i < sizeof LIVE / sizeof *LIVE; i++) {
            seed(0);
            printf("%7.2f", run(kind, LIVE[i] << 10, 0, 0, labelled));
        }
    }
    for (int churn = 0; churn < 2; churn++) {
        printf("\n%-26s", churn ? "live / limit, with frees" : "live / limit");
        for (size_t i = 0; i < sizeof LIMITS / sizeof *LIMITS; i++)
            printf("%6zuK", LIMITS[i]);
        for (int kind = 0; kind < KINDS; kind++)
            limits(churn, labelled, kind);
    }
    puts("");
    return 0;
}

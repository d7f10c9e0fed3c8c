/* lifetime-play TRAIN TEST: what two runs of a program say about lifetimes by site, as lines of JSON.
 *
 * Each run is played on one context, as today, and on two of one space: one has the blocks that a forecast
 * calls long-lived. At each trough all contexts are trimmed. From TRAIN comes the forecast, and for each key
 * the share from which on blocks count as long-lived: the one with the least memory in TRAIN's own troughs.
 * TEST judges.
 *
 * lifetime-play TRAIN TEST one|two|lookup, for callgrind: plays the beginning of TEST once, on one context;
 * on two by a forecast by line that is known beforehand; on two with a look into a table of lines at each
 * allocation. */
#include "forecast.h"

#include <hakmem/hakmem.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    LOOK = 1024 /* steps from one look at the peak to the next */,
    SHARES = 6,
    PAGE = 4096,
    COUNTED = 300000,
    TABLE = 4096
};

static const double counted_share = 0.05;

static const double shares[SHARES] = {0.02, 0.05, 0.1, 0.25, 0.5, 0.9};
static const char *const key_names[KEYS] = {"size", "line", "line and size", "4 frames and size",
                                            "12 frames and size"};

/* Means over the troughs, but for the peak. */
typedef struct outcome {
    double live, resident, metadata, untrimmed;
    size_t peak;
} outcome;

typedef struct placed {
    void *p;
    hak_ctx *ctx;
} placed;

/* Lines of long-lived blocks; a later one takes an earlier one's place. */
typedef struct table {
    uint32_t line[TABLE];
} table;

typedef struct player {
    hak_ctx *contexts[2];
    unsigned count;
    placed *blocks;
    outcome sum;
} player;

static hak_stats stats(const player *pl)
{
    hak_stats sum = {0};
    for (unsigned i = 0; i < pl->count; i++) {
        hak_stats s = {.size = sizeof s};
        hak_ctx_stats(pl->contexts[i], &s);
        sum.live_bytes += s.live_bytes;
        sum.committed_bytes += s.committed_bytes;
        sum.metadata_bytes += s.metadata_bytes;
        sum.released_bytes += s.released_bytes;
        sum.retained_bytes = s.retained_bytes; /* the space's */
    }
    return sum;
}

static size_t resident(const hak_stats *s)
{
    return s->committed_bytes - s->released_bytes + s->retained_bytes;
}

static void trough(player *pl)
{
    hak_stats s = stats(pl);
    pl->sum.untrimmed += (double)resident(&s);
    for (unsigned i = 0; i < pl->count; i++)
        hak_ctx_trim(pl->contexts[i]);
    s = stats(pl);
    pl->sum.live += (double)s.live_bytes;
    pl->sum.resident += (double)resident(&s);
    pl->sum.metadata += (double)s.metadata_bytes;
}

/* The pages of bytes that are new. */
static void touch(char *p, size_t from, size_t n)
{
    for (size_t at = from; at < n; at = (at / PAGE + 1) * PAGE)
        p[at] = 1;
}

/* These three are counted by name. */
__attribute__((noinline)) static void play_alloc(placed *b, hak_ctx *ctx, uint32_t size)
{
    b->ctx = ctx;
    b->p = hak_alloc(ctx, size);
}

__attribute__((noinline)) static void play_again(placed *b, uint32_t size)
{
    if (size) b->p = hak_realloc(b->ctx, b->p, size);
    else hak_free(b->ctx, b->p);
}

__attribute__((noinline)) static unsigned play_lookup(const table *t, uint32_t line)
{
    return t->line[line * 0x9e3779b9u >> 20] == line;
}

static void play_step(player *pl, const step *s, unsigned set)
{
    placed *b = &pl->blocks[s->block];
    if (s->op == PLAY_ALLOC) play_alloc(b, pl->contexts[set], s->size);
    else play_again(b, s->size);
    if (s->op == PLAY_FREE) return;
    if (!b->p) fail("no memory", "");
    touch(b->p, 0, s->size);
}

static player begin(const history *h, unsigned contexts, hak_space *space)
{
    player pl = {.count = contexts, .blocks = zeros(h->block_count, sizeof *pl.blocks)};
    for (unsigned i = 0; i < contexts; i++)
        if (!(pl.contexts[i] = hak_ctx_new(space, NULL))) fail("no memory", "");
    return pl;
}

static void end(player *pl, hak_space *space)
{
    for (unsigned i = 0; i < pl->count; i++)
        hak_ctx_destroy(pl->contexts[i]);
    hak_space_delete(space);
    free(pl->blocks);
}

/* Without `said` on one context. */
static outcome play(const history *h, const bool *said)
{
    hak_space *space = hak_space_new(NULL);
    player pl = begin(h, said ? 2 : 1, space);
    for (size_t i = 0; i < h->step_count; i++) {
        const step *s = &h->steps[i];
        if (s->op == PLAY_MARK) trough(&pl);
        else play_step(&pl, s, said && said[s->block]);
        if (i % LOOK) continue;
        hak_stats now = stats(&pl);
        if (resident(&now) > pl.sum.peak) pl.sum.peak = resident(&now);
    }
    end(&pl, space);
    pl.sum.live /= h->marks;
    pl.sum.resident /= h->marks;
    pl.sum.metadata /= h->marks;
    pl.sum.untrimmed /= h->marks;
    return pl.sum;
}

static void count(const history *train, const history *test, const char *mode)
{
    bool *said = zeros(test->block_count, sizeof *said), lookup = strcmp(mode, "lookup") == 0;
    forecast f = forecast_learn(train, KEY_LINE);
    table t = {{0}};
    size_t steps = test->step_count < COUNTED ? test->step_count : COUNTED;
    forecast_tell(&f, test, counted_share, said);
    for (size_t i = 0; i < test->block_count; i++)
        if (said[i]) t.line[test->blocks[i].site[0] * 0x9e3779b9u >> 20] = test->blocks[i].site[0];
    bool two = lookup || strcmp(mode, "two") == 0;
    if (!two && strcmp(mode, "one") != 0) fail("modes are one, two and lookup", "");
    hak_space *space = hak_space_new(NULL);
    player pl = begin(test, two ? 2 : 1, space);
    size_t allocations = 0;
    for (size_t i = 0; i < steps; i++) {
        const step *s = &test->steps[i];
        if (s->op == PLAY_MARK) continue;
        unsigned set = two && said[s->block];
        allocations += s->op == PLAY_ALLOC;
        if (lookup && s->op == PLAY_ALLOC) set = play_lookup(&t, test->blocks[s->block].site[0]);
        play_step(&pl, s, set);
    }
    end(&pl, space);
    forecast_free(&f);
    free(said);
    printf("{\"allocations\": %zu}\n", allocations);
}

static void print(const char *key, double share, size_t keys, double train, const outcome *o, quality q)
{
    printf("{\"key\": \"%s\", \"share\": %g, \"keys\": %zu, \"train_resident\": %.0f, \"live\": %.0f, "
           "\"resident\": %.0f, "
           "\"metadata\": %.0f, \"untrimmed\": %.0f, \"peak\": %zu, \"precision_blocks\": %.4f, "
           "\"recall_blocks\": %.4f, "
           "\"precision_bytes\": %.4f, \"recall_bytes\": %.4f}\n",
           key, share, keys, train, o->live, o->resident, o->metadata, o->untrimmed, o->peak,
           q.precision_blocks, q.recall_blocks, q.precision_bytes, q.recall_bytes);
    fflush(stdout);
}

/* The share with the least memory in the troughs of the run that it was learned from. */
static double choose_share(const history *train, const forecast *f, double *least)
{
    bool *said = zeros(train->block_count, sizeof *said);
    double best = 1;
    *least = 0;
    for (unsigned i = 0; i < SHARES; i++) {
        forecast_tell(f, train, shares[i], said);
        outcome o = play(train, said);
        if (*least > 0 && o.resident >= *least) continue;
        *least = o.resident;
        best = shares[i];
    }
    free(said);
    return best;
}

static void judge(const history *train, const history *test)
{
    bool *said = zeros(test->block_count, sizeof *said);
    outcome before = play(train, NULL), o = play(test, NULL);
    size_t lasted = 0;
    for (size_t i = 0; i < test->block_count; i++)
        lasted += said[i] = test->blocks[i].lasted;
    printf("{\"steps\": %zu, \"blocks\": %zu, \"lasted\": %zu, \"marks\": %u}\n", test->step_count,
           test->block_count, lasted, test->marks);
    print("none", 0, 0, before.resident, &o, (quality){0, 0, 0, 0});
    o = play(test, said);
    print("known", 0, 0, 0, &o, forecast_quality(test, said));
    for (size_t i = 0; i < test->block_count; i++) /* as many, by chance */
        said[i] = i * 0x9e3779b97f4a7c15u >> 32 < ((uint64_t)lasted << 32) / test->block_count;
    o = play(test, said);
    print("chance", 0, 0, 0, &o, forecast_quality(test, said));
    for (unsigned key = 0; key < KEYS; key++) {
        forecast f = forecast_learn(train, (forecast_key)key);
        double least, share = choose_share(train, &f, &least);
        forecast_tell(&f, test, share, said);
        o = play(test, said);
        print(key_names[key], share, f.keys, least, &o, forecast_quality(test, said));
        forecast_free(&f);
    }
    free(said);
}

int main(int argc, char **argv)
{
    if (argc < 3 || argc > 4) fail("usage: lifetime-play TRAIN TEST [one|two|lookup]", "");
    history train = history_load(argv[1]), test = history_load(argv[2]);
    if (argc == 4) count(&train, &test, argv[3]);
    else judge(&train, &test);
    history_free(&train);
    history_free(&test);
    return 0;
}

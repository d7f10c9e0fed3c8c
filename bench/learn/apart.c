/* apart LEARN TRACE: would memory be saved if blocks of call sites whose blocks live long lay in slabs of
 * their own? Sites are learned from one recording of a program, and tried on another one. A token of the
 * compiler is a constant of its call site, so that no token says more than its site does.
 *
 * A trough is a low of live bytes, below 0.7 of the high before it and of that behind it. Long-lived is a block
 * that lives at a trough. Prints a line of JSON for each key: what the troughs hold (committed bytes less
 * released ones, after a trim, as a mean) with one context, with two by the forecast that was best in the
 * recording that it comes from, and by one that is always right. */
#include "trace.h"

#include <hakmem/hakmem.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TROUGHS = 64, KEYS = 1 << 16, NEVER = UINT32_MAX };
static const double depth = 0.7, shares[] = {0.02, 0.05, 0.2, 0.5, 0.9};

typedef struct recording {
    trace_event *events;
    size_t count, slots;
    size_t troughs[TROUGHS], trough_count;
    bool *is_long; /* by event; of allocations */
} recording;

typedef struct key {
    uint64_t value;
    uint32_t blocks, is_long;
} key;

typedef enum by { BY_SITE, BY_SITE_AND_SIZE, BY_SIZE, BYS } by;
static const char *const names[BYS] = {"site", "site and size", "size"};

static void *zeroed(size_t count, size_t size)
{
    void *p = calloc(count, size);
    if (p) return p;
    fprintf(stderr, "apart: no memory\n");
    exit(1);
}

/* ---- Recordings ------------------------------------------------------------------------------------ */

static recording load(const char *name)
{
    recording r = {0};
    FILE *in = fopen(name, "rb");
    if (!in || fseek(in, 0, SEEK_END) != 0) {
        fprintf(stderr, "apart: %s cannot be read\n", name);
        exit(1);
    }
    r.count = (size_t)ftell(in) / sizeof *r.events;
    r.events = zeroed(r.count + 1, sizeof *r.events);
    rewind(in);
    r.count = fread(r.events, sizeof *r.events, r.count, in);
    fclose(in);
    for (size_t i = 0; i < r.count; i++)
        if (r.events[i].slot >= r.slots) r.slots = r.events[i].slot + 1u;
    return r;
}

/* A low counts once the live bytes have risen enough behind it. */
static void find_troughs(recording *r)
{
    size_t *sizes = zeroed(r->slots, sizeof *sizes), live = 0, high = 0, low = SIZE_MAX, at = 0;
    for (size_t i = 0; i < r->count; i++) {
        const trace_event *e = &r->events[i];
        const size_t now = e->op == TRACE_FREE ? 0 : e->size;
        live += now - sizes[e->slot];
        sizes[e->slot] = now;
        if (live > high) high = live;
        if ((double)live < depth * (double)high && live < low) {
            low = live;
            at = i;
        }
        if (low == SIZE_MAX || (double)low > depth * (double)live) continue;
        if (r->trough_count < TROUGHS) r->troughs[r->trough_count++] = at;
        high = live;
        low = SIZE_MAX;
    }
    free(sizes);
}

static void find_long(recording *r)
{
    size_t *born = zeroed(r->slots, sizeof *born), passed = 0;
    size_t *troughs_before = zeroed(r->slots, sizeof *troughs_before);
    r->is_long = zeroed(r->count, sizeof *r->is_long);
    for (size_t i = 0; i < r->count; i++) {
        const trace_event *e = &r->events[i];
        while (passed < r->trough_count && r->troughs[passed] < i)
            passed++;
        if (e->op == TRACE_ALLOC) {
            born[e->slot] = i + 1;
            troughs_before[e->slot] = passed;
        } else if (e->op == TRACE_FREE && born[e->slot]) {
            r->is_long[born[e->slot] - 1] = passed > troughs_before[e->slot];
            born[e->slot] = 0;
        }
    }
    for (size_t s = 0; s < r->slots; s++)
        if (born[s]) r->is_long[born[s] - 1] = r->trough_count > troughs_before[s];
    free(born);
    free(troughs_before);
}

/* ---- Forecasts ------------------------------------------------------------------------------------- */

static key keys[KEYS];

static key *key_of(const trace_event *e, by how)
{
    const uint64_t site = how == BY_SIZE ? 0 : e->site, size = how == BY_SITE ? 0 : (e->size + 15) / 16;
    const uint64_t value = (site << 32 | size) + 1;
    size_t i = (size_t)(value * 0x9E3779B97F4A7C15u >> 48) % KEYS;
    while (keys[i].value && keys[i].value != value)
        i = (i + 1) % KEYS;
    keys[i].value = value;
    return &keys[i];
}

static size_t learn(const recording *r, by how)
{
    size_t count = 0;
    memset(keys, 0, sizeof keys);
    for (size_t i = 0; i < r->count; i++) {
        if (r->events[i].op != TRACE_ALLOC || count > KEYS / 2) continue;
        key *k = key_of(&r->events[i], how);
        count += k->blocks == 0;
        k->blocks++;
        k->is_long += r->is_long[i];
    }
    return count;
}

/* share above 1: the forecast is always right; below 0: never long. */
static bool forecast(const recording *r, size_t i, by how, double share)
{
    if (share < 0) return false;
    if (share > 1) return r->is_long[i];
    const key *k = key_of(&r->events[i], how);
    return k->blocks > 0 && k->is_long >= share * k->blocks;
}

/* ---- Playing --------------------------------------------------------------------------------------- */

static size_t held(hak_ctx *const ctx[2])
{
    size_t sum = 0;
    for (int i = 0; i < 2 && ctx[i]; i++) {
        hak_stats s = {.size = sizeof s};
        hak_ctx_trim(ctx[i]);
        hak_ctx_stats(ctx[i], &s);
        sum += s.committed_bytes - s.released_bytes;
    }
    return sum;
}

/* The bytes of the troughs, as a mean. */
static double play(const recording *r, by how, double share)
{
    hak_space *space = hak_space_new(NULL);
    hak_options options = HAK_OPTIONS_INIT;
    options.workload = HAK_WORKLOAD_MALLOC;
    hak_ctx *ctx[2] = {hak_ctx_new(space, &options), share < 0 ? NULL : hak_ctx_new(space, &options)};
    void **blocks = zeroed(r->slots, sizeof *blocks);
    bool *apart = zeroed(r->slots, sizeof *apart);
    double sum = 0;
    for (size_t i = 0, trough = 0; i < r->count; i++) {
        const trace_event *e = &r->events[i];
        void **p = &blocks[e->slot];
        if (e->op == TRACE_ALLOC) {
            apart[e->slot] = forecast(r, i, how, share);
            *p = hak_alloc(ctx[apart[e->slot]], e->size);
        } else if (e->op == TRACE_REALLOC) {
            *p = hak_realloc(ctx[apart[e->slot]], *p, e->size);
        } else if (e->op == TRACE_FREE) {
            hak_free(ctx[apart[e->slot]], *p);
            *p = NULL;
        }
        if (*p && e->size >= 1) memset(*p, 1, e->size);
        if (trough < r->trough_count && r->troughs[trough] == i) {
            sum += (double)held(ctx);
            trough++;
        }
    }
    hak_ctx_destroy(ctx[0]);
    hak_ctx_destroy(ctx[1]);
    hak_space_delete(space);
    free(blocks);
    free(apart);
    return sum / (double)r->trough_count;
}

static void try_key(const recording *from, const recording *to, by how)
{
    const size_t count = learn(from, how);
    double best = -1, least = play(from, how, -1);
    for (size_t i = 0; i < sizeof shares / sizeof shares[0]; i++) {
        const double bytes = play(from, how, shares[i]);
        if (bytes < least) {
            least = bytes;
            best = shares[i];
        }
    }
    size_t said = 0, right = 0, all = 0;
    for (size_t i = 0; i < to->count; i++) {
        if (to->events[i].op != TRACE_ALLOC) continue;
        const bool is = to->is_long[i], says = forecast(to, i, how, best);
        all += is;
        said += says;
        right += is && says;
    }
    printf("{\"key\": \"%s\", \"keys\": %zu, \"share\": %g, \"troughs\": %zu, \"one\": %.0f, \"two\": %.0f, "
           "\"known\": %.0f, \"precision\": %.3f, \"recall\": %.3f}\n",
           names[how], count, best, to->trough_count, play(to, how, -1), play(to, how, best),
           play(to, how, 2), said ? (double)right / (double)said : 0, all ? (double)right / (double)all : 0);
}

int main(int argc, char **argv)
{
    if (argc != 3) {
        fprintf(stderr, "usage: apart LEARN TRACE\n");
        return 2;
    }
    recording r[2] = {load(argv[1]), load(argv[2])};
    for (int i = 0; i < 2; i++) {
        find_troughs(&r[i]);
        if (r[i].trough_count == 0) {
            fprintf(stderr, "apart: %s has no trough\n", argv[i + 1]);
            return 1;
        }
        find_long(&r[i]);
    }
    for (by how = 0; how < BYS; how++)
        try_key(&r[0], &r[1], how);
    return 0;
}

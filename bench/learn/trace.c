#include "trace.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct builder {
    trace t;
    size_t room;
    uint64_t random;
} builder;

static void fail(const char *what, const char *name)
{
    fprintf(stderr, "replay: %s: %s\n", name, what);
    exit(1);
}

static void add(builder *b, unsigned op, size_t slot, size_t size, uint32_t site)
{
    if (b->t.count == b->room) {
        b->room = b->room ? 2 * b->room : 1 << 16;
        b->t.events = realloc(b->t.events, b->room * sizeof *b->t.events);
        if (!b->t.events) fail("no memory", "trace");
    }
    b->t.events[b->t.count++] = trace_event_of(op, slot, size, site);
    if (op == TRACE_WINDOW) b->t.windows++;
    else if (slot >= b->t.slots) b->t.slots = slot + 1;
}

static size_t below(builder *b, size_t n)
{
    b->random ^= b->random << 13;
    b->random ^= b->random >> 7;
    b->random ^= b->random << 17;
    return (size_t)((b->random >> 11) % n);
}

static void window(builder *b)
{
    add(b, TRACE_WINDOW, 0, 0, 0);
}

/* ---- Workloads ------------------------------------------------------------------------------------ */

/* Random slots are replaced by blocks of random sizes. */
static void mix(builder *b, size_t slots, size_t least, size_t most, size_t count)
{
    for (size_t i = 0; i < slots; i++)
        add(b, TRACE_ALLOC, i, least + below(b, most - least + 1), 1);
    for (size_t k = 0; k < count; k++) {
        size_t i = below(b, slots);
        add(b, TRACE_FREE, i, 0, 0);
        add(b, TRACE_ALLOC, i, least + below(b, most - least + 1), 1);
        if ((k + 1) % (count / 4) == 0) window(b);
    }
}

static void mix10k(builder *b)
{
    mix(b, 10000, 16, 1024, 400000);
}

static void mix500k(builder *b)
{
    mix(b, 300000, 16, 512, 600000);
}

static void mixed_big(builder *b)
{
    mix(b, 8, 64 << 10, 2 << 20, 4000);
}

/* The heap rises to so many bytes and falls, `count` times. */
static void wave(builder *b, size_t bytes, size_t least, size_t most, unsigned count)
{
    for (; count; count--) {
        size_t n = 0;
        for (size_t all = 0; all < bytes; n++) {
            size_t size = least + below(b, most - least + 1);
            add(b, TRACE_ALLOC, n, size, 1);
            all += size;
        }
        while (n--)
            add(b, TRACE_FREE, n, 0, 0);
    }
    window(b);
}

static void waves20(builder *b)
{
    wave(b, 20 << 20, 16, 512, 1);
}

static void waves100(builder *b)
{
    wave(b, 100 << 20, 64, 8192, 1);
}

static void waves200(builder *b)
{
    wave(b, 200 << 20, 1024, 65536, 1);
}

/* Records come and stay. */
static void grow(builder *b, size_t bytes, unsigned windows)
{
    size_t n = 0, all = 0;
    for (unsigned w = 1; w <= windows; w++) {
        for (; all < bytes / windows * w; n++) {
            size_t size = 32 + below(b, 480);
            add(b, TRACE_ALLOC, n, size, 1);
            all += size;
        }
        if (w < windows) window(b);
    }
    while (n--)
        add(b, TRACE_FREE, n, 0, 0);
    window(b);
}

static void grow400(builder *b)
{
    grow(b, (size_t)400 << 20, 20);
}

static void grow15(builder *b)
{
    grow(b, 15 << 20, 4);
}

/* Buffers of random final sizes grow by a step. */
static void buffers(builder *b, size_t lanes, size_t most, size_t step, size_t count)
{
    size_t *size = calloc(lanes, sizeof *size);
    if (!size) fail("no memory", "trace");
    for (size_t k = 0; k < count; k++) {
        size_t i = below(b, lanes);
        if (size[i] > most || (size[i] && below(b, 64) == 0)) {
            add(b, TRACE_FREE, i, 0, 0);
            size[i] = 0;
        } else {
            unsigned op = size[i] ? TRACE_REALLOC : TRACE_ALLOC;
            size[i] = size[i] ? size[i] + step : 32;
            add(b, op, i, size[i], 2);
        }
        if ((k + 1) % (count / 4) == 0) window(b);
    }
    free(size);
}

static void buffers_steps(builder *b)
{
    buffers(b, 2000, 16 << 10, 200, 400000);
}

/* Fill, free nine of ten, fill with other sizes. */
static void fragments(builder *b)
{
    static const size_t sizes[] = {48, 80, 160, 320, 640};
    enum { MOST = 48 << 20, KINDS = 5 };
    size_t base = 0;
    for (unsigned round = 0; round < 12; round++) {
        size_t size = sizes[round % KINDS], n = MOST / 8 / size;
        for (size_t i = 0; i < n; i++)
            add(b, TRACE_ALLOC, base + i, size + below(b, 16), 1);
        for (size_t i = 0; i < n; i++)
            if (i % 10) add(b, TRACE_FREE, base + i, 0, 0);
        base += n;
        if (round % 3 == 2) window(b);
    }
}

/* A buffer of 2 MiB for each request, beside small blocks. */
static void requests(builder *b)
{
    for (unsigned w = 0; w < 4; w++) {
        for (unsigned r = 0; r < 600; r++) {
            add(b, TRACE_ALLOC, 0, 2 << 20, 3);
            for (size_t i = 1; i <= 50; i++)
                add(b, TRACE_ALLOC, i, 16 + below(b, 2000), 1);
            for (size_t i = 1; i <= 50; i++)
                add(b, TRACE_FREE, i, 0, 0);
            add(b, TRACE_FREE, 0, 0, 0);
        }
        window(b);
    }
}

/* First in, first out. */
static void queue(builder *b)
{
    enum { DEEP = 30000 };
    for (size_t k = 0; k < 400000; k++) {
        if (k >= DEEP) add(b, TRACE_FREE, k % DEEP, 0, 0);
        add(b, TRACE_ALLOC, k % DEEP, 24 + below(b, 200), 1);
        if (k % 100000 == 99999) window(b);
    }
}

static const struct {
    const char *name;
    void (*make)(builder *);
} made[] = {
    {"mix10k", mix10k},       {"mix500k", mix500k},   {"mixed-big", mixed_big},
    {"waves20", waves20},     {"waves100", waves100}, {"waves200", waves200},
    {"grow15", grow15},       {"grow400", grow400},   {"buffers-steps", buffers_steps},
    {"fragments", fragments}, {"requests", requests}, {"queue", queue},
};
enum { MADE = sizeof made / sizeof *made };

/* ---- Files ---------------------------------------------------------------------------------------- */

static void read_file(builder *b, const char *name, size_t every)
{
    FILE *file = fopen(name, "rb");
    if (!file) fail("cannot be read", name);
    trace_event e;
    size_t n = 0;
    while (fread(&e, sizeof e, 1, file) == 1) {
        if (e.op > TRACE_REALLOC) fail("not a trace", name);
        add(b, e.op, e.slot, e.size, e.site);
        if (++n % every == 0) window(b);
    }
    fclose(file);
    if (!n) fail("an empty trace", name);
}

/* Frees what is live, within the last window. */
static void finish(builder *b)
{
    bool *live = calloc(b->t.slots + 1, sizeof *live);
    if (!live) fail("no memory", "trace");
    for (size_t i = 0; i < b->t.count; i++) {
        const trace_event *e = &b->t.events[i];
        if (e->op != TRACE_WINDOW) live[e->slot] = e->op != TRACE_FREE;
    }
    if (b->t.count && b->t.events[b->t.count - 1].op == TRACE_WINDOW) {
        b->t.count--;
        b->t.windows--;
    }
    for (size_t i = 0; i < b->t.slots; i++)
        if (live[i]) add(b, TRACE_FREE, i, 0, 0);
    window(b);
    free(live);
}

trace trace_get(const char *name, size_t every)
{
    builder b = {.random = 88172645463325252u};
    for (size_t i = 0; i < MADE && !b.t.count; i++)
        if (strcmp(name, made[i].name) == 0) made[i].make(&b);
    if (!b.t.count) read_file(&b, name, every);
    finish(&b);
    return b.t;
}

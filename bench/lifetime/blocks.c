#include "blocks.h"

#include <stdio.h>
#include <stdlib.h>

/* The block that lies at an address; a freed one leaves its entry for the next one there. */
typedef struct entry {
    uint64_t address;
    uint32_t block;
} entry;

static const uint32_t none = UINT32_MAX;

void fail(const char *what, const char *name)
{
    fprintf(stderr, "lifetime-play: %s%s%s\n", name, *name ? ": " : "", what);
    exit(1);
}

void *zeros(size_t count, size_t size)
{
    void *p = calloc(count ? count : 1, size);
    if (!p) fail("no memory", "");
    return p;
}

static record_event *read_all(const char *name, size_t *count)
{
    FILE *file = fopen(name, "rb");
    if (!file || fseek(file, 0, SEEK_END) != 0) fail("cannot be read", name);
    long bytes = ftell(file);
    rewind(file);
    *count = bytes > 0 ? (size_t)bytes / sizeof(record_event) : 0;
    record_event *all = zeros(*count, sizeof *all);
    if (fread(all, sizeof *all, *count, file) != *count) fail("cannot be read", name);
    fclose(file);
    while (*count && all[*count - 1].op != RECORD_MARK)
        --*count;
    if (!*count) fail("has no trough", name);
    return all;
}

static entry *find(entry *map, size_t size, uint64_t address)
{
    size_t i = (address >> 4) * 0x9e3779b97f4a7c15u >> 20 & (size - 1);
    while (map[i].address && map[i].address != address)
        i = (i + 1) & (size - 1);
    if (!map[i].address) map[i] = (entry){address, none};
    return &map[i];
}

static void allocated(history *h, entry *e, const record_event *r)
{
    uint32_t size = r->size ? r->size : 1;
    block *b = &h->blocks[h->block_count];
    *b = (block){size, size, h->marks, {r->site[0], r->site[1], r->site[2]}, false};
    e->block = (uint32_t)h->block_count++;
    h->steps[h->step_count++] = (step){e->block, size, PLAY_ALLOC};
}

static void died(history *h, uint32_t i)
{
    h->blocks[i].lasted = h->blocks[i].born < h->marks;
}

static void moved(history *h, entry *e, uint32_t i, uint32_t size)
{
    if (size > h->blocks[i].most) h->blocks[i].most = size;
    e->block = i;
    h->steps[h->step_count++] = (step){i, size, PLAY_REALLOC};
}

history history_load(const char *file)
{
    size_t count, size = 1024;
    record_event *all = read_all(file, &count);
    while (size < 2 * count)
        size *= 2;
    entry *map = zeros(size, sizeof *map);
    history h = {zeros(count, sizeof *h.steps), zeros(count, sizeof *h.blocks), 0, 0, 0};
    uint32_t moving = none;
    for (const record_event *r = all; r < all + count; r++) {
        entry *e = r->op == RECORD_MARK ? NULL : find(map, size, r->address);
        switch (r->op) {
        case RECORD_ALLOC:
            allocated(&h, e, r);
            break;
        case RECORD_FREE:
            if (e->block == none) break;
            died(&h, e->block);
            h.steps[h.step_count++] = (step){e->block, 0, PLAY_FREE};
            e->block = none;
            break;
        case RECORD_FROM:
            moving = e->block;
            e->block = none;
            break;
        case RECORD_TO:
            if (moving != none) moved(&h, e, moving, r->size);
            moving = none;
            break;
        case RECORD_MARK:
            h.marks++;
            h.steps[h.step_count++] = (step){0, 0, PLAY_MARK};
            break;
        default:
            fail("is not a trace", file);
        }
    }
    for (size_t i = 0; i < size; i++)
        if (map[i].address && map[i].block != none) died(&h, map[i].block);
    free(map);
    free(all);
    return h;
}

void history_free(history *h)
{
    free(h->steps);
    free(h->blocks);
}

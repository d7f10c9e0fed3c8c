#include "mallctl.h"

#include "heap.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { PAGE = 4096, QUANTUM = 16, ALL_ARENAS = 4096 };

typedef enum kind {
    EPOCH,    /* uint64_t, may be written; the figures are always those of now */
    AMOUNT,   /* size_t, of the statistics */
    PAGES,    /* the same, in pages */
    CONSTANT, /* size_t */
    COUNT,    /* unsigned */
    MAKE,     /* unsigned, a new number each time */
    TRIM,
    FLUSH,
    NOTHING /* what is written is not heeded */
} kind;

typedef enum figure { NONE, LIVE, RESIDENT, COMMITTED, METADATA } figure;

/* '*' stands for the number of an arena. */
static const struct entry {
    const char *name;
    kind kind;
    figure figure;
    size_t value;
} entries[] = {
    {"epoch", EPOCH, NONE, 1},
    {"stats.allocated", AMOUNT, LIVE, 0},
    {"stats.active", AMOUNT, RESIDENT, 0},
    {"stats.resident", AMOUNT, RESIDENT, 0},
    {"stats.mapped", AMOUNT, COMMITTED, 0},
    {"stats.metadata", AMOUNT, METADATA, 0},
    {"stats.retained", AMOUNT, NONE, 0},
    {"stats.arenas.*.small.allocated", AMOUNT, LIVE, 0},
    {"stats.arenas.*.small.resident", AMOUNT, RESIDENT, 0},
    {"stats.arenas.*.large.allocated", AMOUNT, NONE, 0},
    {"stats.arenas.*.large.resident", AMOUNT, NONE, 0},
    {"stats.arenas.*.pactive", PAGES, RESIDENT, 0},
    {"stats.arenas.*.pdirty", PAGES, NONE, 0},
    {"stats.arenas.*.pmuzzy", PAGES, NONE, 0},
    {"arenas.page", CONSTANT, NONE, PAGE},
    {"arenas.quantum", CONSTANT, NONE, QUANTUM},
    {"arenas.narenas", COUNT, NONE, 1},
    {"arenas.nbins", COUNT, NONE, 0},
    {"arenas.create", MAKE, NONE, 0},
    {"arena.*.purge", TRIM, NONE, 0},
    {"arena.*.decay", TRIM, NONE, 0},
    {"tcache.create", MAKE, NONE, 0},
    {"tcache.flush", NOTHING, NONE, sizeof(unsigned)},
    {"tcache.destroy", NOTHING, NONE, sizeof(unsigned)},
    {"thread.tcache.flush", FLUSH, NONE, 0},
};

/* How many parts the name has that fits; 0 = it does not. */
static size_t match(const char *pattern, const char *name, size_t *mib, size_t room)
{
    size_t parts = 0;
    for (;;) {
        char *end;
        const size_t n = strcspn(pattern, ".");
        size_t number = 0;
        if (parts == room) return 0;
        if (*pattern == '*') {
            if (*name < '0' || *name > '9') return 0;
            number = strtoul(name, &end, 10);
        } else {
            if (strncmp(pattern, name, n) != 0) return 0;
            end = (char *)(uintptr_t)name + n;
        }
        mib[parts++] = number;
        pattern += n;
        if (*pattern != *end) return 0;
        if (*pattern == '\0') return parts;
        pattern++;
        name = end + 1;
    }
}

int hks_mallctl_find(const char *name, size_t *mib, size_t *parts)
{
    size_t found[HKS_MALLCTL_PARTS];
    for (size_t i = 0; i < sizeof entries / sizeof *entries; i++) {
        const size_t n = match(entries[i].name, name, found, HKS_MALLCTL_PARTS);
        if (n == 0) continue;
        if (n > *parts) return EINVAL;
        found[0] = i;
        memcpy(mib, found, n * sizeof *mib);
        *parts = n;
        return 0;
    }
    return ENOENT;
}

/* The place of '*' among the parts; 0 = there is none. */
static size_t arena_at(const char *pattern)
{
    size_t parts = 0;
    for (; *pattern && *pattern != '*'; pattern++)
        parts += *pattern == '.';
    return *pattern ? parts : 0;
}

/* All that there is is in the first arena. */
static size_t amount(const struct entry *e, size_t arena)
{
    hak_stats s = {.size = sizeof s};
    hak_ctx *ctx = hks_heap_shared();
    if (e->figure == NONE || !ctx || hak_ctx_stats(ctx, &s) != 0) return 0;
    if (arena != 0 && arena != ALL_ARENAS) return 0;
    const size_t of[] = {[LIVE] = s.live_bytes,
                         [RESIDENT] = s.committed_bytes - s.released_bytes + s.retained_bytes,
                         [COMMITTED] = s.committed_bytes + s.retained_bytes,
                         [METADATA] = s.metadata_bytes};
    return e->kind == PAGES ? of[e->figure] / PAGE : of[e->figure];
}

static int give(const void *value, size_t size, void *old, size_t *old_size)
{
    if (!old || !old_size) return old == (void *)old_size ? 0 : EINVAL;
    if (*old_size != size) return EINVAL;
    memcpy(old, value, size);
    return 0;
}

static int read_number(const struct entry *e, size_t arena, void *old, size_t *old_size)
{
    static atomic_uint made = 1;
    const uint64_t epoch = e->value;
    if (e->kind == EPOCH) return give(&epoch, sizeof epoch, old, old_size);
    if (e->kind == COUNT || e->kind == MAKE) {
        unsigned n = (unsigned)e->value;
        if (!old || !old_size || *old_size != sizeof n) return EINVAL;
        if (e->kind == MAKE) n = atomic_fetch_add(&made, 1);
        return give(&n, sizeof n, old, old_size);
    }
    const size_t n = e->kind == CONSTANT ? e->value : amount(e, arena);
    return give(&n, sizeof n, old, old_size);
}

int hks_mallctl(const size_t *mib, size_t parts, void *old, size_t *old_size, const void *new,
                size_t new_size)
{
    if (parts == 0 || mib[0] >= sizeof entries / sizeof *entries) return ENOENT;
    const struct entry *e = &entries[mib[0]];
    const size_t at = arena_at(e->name);
    if (at >= parts) return ENOENT;
    hak_ctx *heap = hks_heap();
    switch (e->kind) {
    case TRIM:
        if (heap) hak_ctx_trim(hks_heap_shared());
        return 0;
    case FLUSH:
        if (heap) hak_ctx_flush(heap);
        return 0;
    case NOTHING:
        return new &&new_size == e->value ? 0 : EINVAL;
    case EPOCH:
        if (new &&new_size != sizeof(uint64_t)) return EINVAL;
        break;
    default:
        if (new && e->kind != MAKE) return EPERM;
    }
    return read_number(e, at ? mib[at] : 0, old, old_size);
}

size_t hks_mallctl_good_size(size_t n)
{
    hak_ctx *heap = hks_heap();
    return heap ? hak_good_size(heap, n) : n;
}

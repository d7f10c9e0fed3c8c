/* LD_PRELOAD: writes what a program asks of malloc into the file HAK_RECORD (see trace.h), HAK_RECORD_MOST
 * events at most; with HAK_RECORD_SITES=1 also the caller, whose address is the same in each run without
 * random addresses. Only the first process that finds no such file is recorded. glibc. */
#include "trace.h"

#include "preloaded.h"

#include <sys/mman.h>

enum { BUFFER = 4096, MAP = 1 << 23 };

static size_t most, written, sites;
static trace_event buffer[BUFFER];
static size_t buffered;
/* Open addressing: address of a block -> its slot. Free slots are a stack. */
static struct entry {
    uintptr_t p;
    uint32_t slot;
} * map;
static uint32_t *free_slots, free_count, slots;

static size_t number_of(const char *name, size_t otherwise)
{
    const char *text = getenv(name);
    return text ? strtoull(text, NULL, 10) : otherwise;
}

static void *pages(size_t n)
{
    void *p = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return p == MAP_FAILED ? NULL : p;
}

static bool note_begin(void)
{
    most = number_of("HAK_RECORD_MOST", SIZE_MAX);
    sites = number_of("HAK_RECORD_SITES", 0);
    map = pages(MAP * sizeof *map);
    free_slots = pages(MAP * sizeof *free_slots);
    return map && free_slots;
}

static void note_end(void)
{
    record_write(buffer, buffered * sizeof *buffer);
    buffered = 0;
}

static struct entry *find(uintptr_t p)
{
    size_t i = (p >> 4) * 0x9e3779b97f4a7c15u >> 41;
    while (map[i].p && map[i].p != p)
        i = (i + 1) % MAP;
    return &map[i];
}

/* The entries behind it move up, so that searches find them. */
static void drop(struct entry *e)
{
    size_t hole = (size_t)(e - map), i = hole;
    for (;;) {
        map[hole].p = 0;
        for (;;) {
            i = (i + 1) % MAP;
            if (!map[i].p) return;
            size_t home = (map[i].p >> 4) * 0x9e3779b97f4a7c15u >> 41;
            if (((i - home) % MAP) >= ((i - hole) % MAP)) break;
        }
        map[hole] = map[i];
        hole = i;
    }
}

static void put(unsigned op, uint32_t slot, size_t size, uint32_t site)
{
    if (written++ >= most) return;
    buffer[buffered++] = trace_event_of(op, slot, size, site);
    if (buffered == BUFFER) note_end();
}

static void note_made(void *p, size_t n, const void *caller)
{
    struct entry *e = find((uintptr_t)p);
    e->p = (uintptr_t)p;
    e->slot = free_count ? free_slots[--free_count] : slots++;
    put(TRACE_ALLOC, e->slot, n ? n : 1, sites ? (uint32_t)(uintptr_t)caller : 0);
}

static void note_freed(void *p)
{
    struct entry *e = find((uintptr_t)p);
    if (!e->p) return;
    put(TRACE_FREE, e->slot, 0, 0);
    free_slots[free_count++] = e->slot;
    drop(e);
}

static void note_resized(void *p, void *now, size_t n)
{
    struct entry *e = find((uintptr_t)p);
    if (!e->p) return;
    uint32_t slot = e->slot;
    drop(e);
    *find((uintptr_t)now) = (struct entry){(uintptr_t)now, slot};
    put(TRACE_REALLOC, slot, n, 0);
}

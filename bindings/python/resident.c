#include "resident.h"

#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

/* Extents, and mappings of big blocks. When there are more, hak_owns knows the big blocks by their start. */
enum { RANGES = 256 };
typedef struct range {
    _Atomic uintptr_t start, end;
} range;

static range ranges[RANGES];
static hak_os base;

/* A lock of the space is held, but a fork may have cut short another thread: hence atomics. */
static void note(uintptr_t start, size_t n)
{
    for (int i = 0; i < RANGES; i++) {
        if (atomic_load(&ranges[i].start)) continue;
        atomic_store(&ranges[i].end, start + n);
        atomic_store(&ranges[i].start, start);
        return;
    }
}

static void forget(uintptr_t start)
{
    for (int i = 0; i < RANGES; i++) {
        if (atomic_load(&ranges[i].start) != start) continue;
        atomic_store(&ranges[i].start, 0);
        return;
    }
}

static void *reserve(void *user, size_t n, size_t align, uintptr_t below)
{
    void *p = base.reserve(user, n, align, below);
    if (p) note((uintptr_t)p, n);
    return p;
}

static void release(void *user, void *p, size_t n)
{
    forget((uintptr_t)p);
    base.release(user, p, n);
}

static void *remap(void *user, void *p, size_t old_n, size_t n, uintptr_t below)
{
    void *q = base.remap(user, p, old_n, n, below);
    if (!q) return NULL;
    forget((uintptr_t)p);
    note((uintptr_t)q, n);
    return q;
}

const hak_os *hk_py_noted_os(void)
{
    static hak_os noted = {.size = sizeof noted};
    base.size = sizeof base;
    hak_os_default(&base);
    noted = base;
    noted.reserve = reserve;
    noted.release = release;
    if (base.remap) noted.remap = remap;
    return &noted;
}

size_t hk_py_resident(void)
{
    FILE *f = fopen("/proc/self/statm", "re");
    if (!f) return 0;
    size_t pages = 0;
    if (fscanf(f, "%*s %zu", &pages) != 1) pages = 0;
    fclose(f);
    return pages * (size_t)sysconf(_SC_PAGESIZE);
}

/* Neighbouring mappings of others may have become one with ours: the part that is inside ours. */
static size_t ours(uintptr_t start, uintptr_t end)
{
    size_t inside = 0;
    for (int i = 0; i < RANGES; i++) {
        uintptr_t from = atomic_load(&ranges[i].start), to = atomic_load(&ranges[i].end);
        if (!from || to <= start || from >= end) continue;
        inside += (to < end ? to : end) - (from > start ? from : start);
    }
    return inside > 0 || !hk_py_owns((const void *)start) ? inside : end - start;
}

size_t hk_py_resident_ours(void)
{
    FILE *f = fopen("/proc/self/smaps", "re");
    if (!f) return 0;
    char line[512];
    size_t sum = 0, inside = 0, whole = 1, kib;
    uintptr_t start, end;
    while (fgets(line, sizeof line, f)) {
        if (sscanf(line, "%lx-%lx ", &start, &end) == 2) {
            inside = ours(start, end);
            whole = end - start;
        } else if (inside > 0 && sscanf(line, "Rss: %zu kB", &kib) == 1) {
            sum +=
                inside == whole ? kib << 10 : (size_t)((double)(kib << 10) * (double)inside / (double)whole);
            inside = 0;
        }
    }
    fclose(f);
    return sum;
}

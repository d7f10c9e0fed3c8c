#include "heap/ranges.h"

#include "common/os.h"

#include <stdatomic.h>

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

const hak_os *hkp_noted_os(void)
{
    static hak_os noted = {.size = sizeof noted};
    hkc_os(&base);
    noted = base;
    noted.reserve = reserve;
    noted.release = release;
    if (base.remap) noted.remap = remap;
    return &noted;
}

size_t hkp_ranges_inside(uintptr_t start, uintptr_t end)
{
    size_t inside = 0;
    for (int i = 0; i < RANGES; i++) {
        uintptr_t from = atomic_load(&ranges[i].start), to = atomic_load(&ranges[i].end);
        if (!from || to <= start || from >= end) continue;
        inside += (to < end ? to : end) - (from > start ? from : start);
    }
    return inside;
}

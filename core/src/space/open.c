#include "space/open.h"

#include "base/classes.h"
#include "space/calls.h"

/* How many chunks are opened at a time. Records take 1 % of their chunks, so they are opened for as many chunks
 * again, up to RECORDS_MOST. Label bytes take up to a quarter, so they are opened for few. */
enum { RECORDS_FIRST = 8, RECORDS_MOST = 512, LABELS_FIRST = 2, LABELS_MOST = 8 };

static uintptr_t up(const void *p)
{
    return hk_align_up((uintptr_t)p, hk_os_page());
}

static uintptr_t down(const void *p)
{
    return (uintptr_t)p & ~(uintptr_t)(hk_os_page() - 1);
}

/* Where the arrays of the first n chunks end: records of slabs and chunks grow down. */
static const void *slabs_end(const hk_extent *e, size_t n)
{
    return hk_extent_slab(e, n * HK_CHUNK_UNITS - 1);
}

static const void *map_end(const hk_extent *e, size_t n)
{
    return e->map + n * HK_CHUNK_UNITS;
}

static const void *bits_end(const hk_extent *e, size_t n)
{
    return hk_extent_bits(e, n * HK_CHUNK_UNITS);
}

static const void *chunks_end(const hk_extent *e, size_t n)
{
    return n > 1 ? hk_extent_chunk(e, n - 1) : e->chunks + 1;
}

static const void *labels_end(const hk_extent *e, unsigned area, size_t n)
{
    return &e->labels[area][(e->base + n * HK_CHUNK) >> hk_area_shift[area]];
}

static size_t step(size_t open, size_t chunk, size_t first, size_t most, size_t all)
{
    return hk_min(all, hk_max(chunk + 1, open + hk_max(first, hk_min(open, most))));
}

/* Opens whole pages of an extent, of which none is open if it grows. */
static int open_pages(hak_space *s, const hk_extent *e, uintptr_t from, uintptr_t to)
{
    if (from >= to) return 0;
    if (!e->grows) return hk_call_open(s, (void *)from, to - from);
    hk_add(&s->os_calls, 1);
    int failed = hk_os_map_at(from, to - from);
    if (!failed) hk_add(&s->reserved_bytes, to - from);
    return failed;
}

static void close_pages(hak_space *s, uintptr_t from, uintptr_t to)
{
    if (from >= to) return;
    hk_os_close((void *)from, to - from, false);
    hk_sub(&s->reserved_bytes, to - from);
}

/* Either all of these or none. */
static int open_all(hak_space *s, const hk_extent *e, const uintptr_t (*ranges)[2], unsigned n)
{
    int failed = 0;
    unsigned i = 0;
    for (; i < n && !failed; i++)
        failed = open_pages(s, e, ranges[i][0], ranges[i][1]);
    if (failed && e->grows)
        for (i--; i > 0; i--)
            close_pages(s, ranges[i - 1][0], ranges[i - 1][1]);
    return failed;
}

/* The map lies before the units, and any address may be looked up in it: `reach` tells how far. */
static void set_open(hk_extent *e, size_t chunks)
{
    e->records_open = (uint32_t)chunks;
    if (e->grows) hk_write(&e->reach, (uint32_t)(chunks * HK_CHUNK_UNITS));
}

int hk_open_records(hak_space *s, hk_extent *e, size_t chunk)
{
    size_t open = e->records_open, all = e->units / HK_CHUNK_UNITS;
    if (chunk < open) return 0;
    size_t n = step(open, chunk, RECORDS_FIRST, RECORDS_MOST, all);
    const uintptr_t ranges[4][2] = {
        {down(slabs_end(e, n)), open ? down(slabs_end(e, open)) : up(e->slabs + 1)},
        {open ? up(bits_end(e, open)) : down(e->bits), up(bits_end(e, n))},
        {down(chunks_end(e, n)), open ? down(chunks_end(e, open)) : up(e->chunks + 1)},
        {up(map_end(e, open)), up(map_end(e, n))},
    };
    int failed = open_all(s, e, ranges, e->grows ? 4 : 3);
    if (!failed) set_open(e, n);
    return failed;
}

int hk_open_units(hak_space *s, hk_extent *e, size_t chunk)
{
    uintptr_t from = e->base + chunk * HK_CHUNK;
    return open_pages(s, e, from, from + HK_CHUNK);
}

int hk_open_labels(hak_space *s, hk_extent *e, unsigned area, size_t chunk)
{
    size_t open = atomic_load_explicit(&e->labels_open[area], memory_order_relaxed);
    if (chunk < open) return 0;
    size_t n = step(open, chunk, LABELS_FIRST, LABELS_MOST, e->units / HK_CHUNK_UNITS);
    const void *from = labels_end(e, area, open);
    int failed = open_pages(s, e, open ? up(from) : down(from), up(labels_end(e, area, n)));
    if (!failed) atomic_store_explicit(&e->labels_open[area], (uint32_t)n, memory_order_release);
    return failed;
}

/* ---- Holes ------------------------------------------------------------------------------------------- */

/* Rows of units that are neither in use nor resident, in the order of bits. */
static size_t rows(const hk_chunk *chunk)
{
    size_t n = 0;
    for (unsigned i = 0; i < 2; i++) {
        uint64_t w = chunk->free[i] & ~chunk->dirty[i];
        n += hk_bits(w & ~(w << 1));
    }
    return n;
}

/* Each row of closed chunks, or of units that were decommitted one by one, splits a mapping, and a process
 * may have some 65,000. */
static size_t holes(const hak_space *s)
{
    size_t n = 0;
    for (uint32_t i = 0; i < s->extents; i++) {
        const hk_extent *e = hk_extent_number(s, i);
        for (size_t c = 0, before = 0; c < e->chunks_used; c++) {
            const hk_chunk *chunk = hk_extent_chunk(e, c);
            if (!s->opens) n += rows(chunk);
            n += chunk->closed && !before;
            before = chunk->closed;
        }
    }
    return n;
}

bool hk_may_split(hak_space *s)
{
    if (s->holes >= HK_HOLES_MOST) s->holes = (uint32_t)holes(s);
    if (s->holes >= HK_HOLES_MOST) return false;
    s->holes++;
    return true;
}

bool hk_close_chunks(hak_space *s, hk_extent *e, size_t chunk, size_t n)
{
    HK_ASSERT(n > 0 && chunk + n <= e->chunks_used);
    if (!s->own || !e->owned || !hk_may_split(s)) return false;
    hk_add(&s->os_calls, 1);
    if (!hk_os_close((void *)(e->base + chunk * HK_CHUNK), n * HK_CHUNK, !e->grows)) return false;
    if (e->grows) hk_sub(&s->reserved_bytes, n * HK_CHUNK);
    for (size_t c = chunk; c < chunk + n; c++)
        hk_extent_chunk(e, c)->closed = true;
    return true;
}

/* ---- Extents that grow ------------------------------------------------------------------------------- */

/* The first records of an extent at p: one range around the head, so that a small space touches few pages,
 * and one around the bitmaps. */
static int open_first(hak_space *s, const hk_extent *e, const char *p, const hk_layout *l)
{
    enum { UNITS = RECORDS_FIRST * HK_CHUNK_UNITS };
    const uintptr_t ranges[2][2] = {
        {down(p + l->slabs - (UNITS - 1) * sizeof(hk_slab)), up(p + l->map + UNITS * sizeof(uint32_t))},
        {down(p + l->chunks - (RECORDS_FIRST - 2) * sizeof(hk_chunk)),
         up(p + l->bits + UNITS * (HK_UNIT_BITS / 8))},
    };
    return open_all(s, e, ranges, 2);
}

/* A slab record tells its extent by its address, so that extents of a space must not overlap. */
static bool overlaps(const hak_space *s, const char *p, size_t n)
{
    for (uint32_t i = 0; s->more && i < s->extents; i++) {
        const hk_extent *e = hk_extent_number(s, i);
        if (p < e->reserved + e->reserved_size && e->reserved < p + n) return true;
    }
    return false;
}

bool hk_extent_place(hak_space *s, hk_extent *e, bool first, hk_layout *l)
{
    enum { DRAWS = 4 };
    size_t units = hk_os_reserve(&s->os) >> HK_UNIT_SHIFT;
    *l = hk_lay_out(units, HK_CHUNK, first, false);
    size_t n = l->units + HK_CHUNK + (units << HK_UNIT_SHIFT);
    int failed = 1;
    char *p = NULL;
    e->grows = e->owned = true;
    for (unsigned i = 0; i < DRAWS && failed > 0; i++) {
        p = (char *)hk_os_draw(i, n);
        if (!overlaps(s, p, n)) failed = open_first(s, e, p, l);
    }
    if (failed) {
        e->grows = e->owned = false;
        return false;
    }
    hk_extent_init(e, p, n, units, l, HK_CHUNK);
    set_open(e, RECORDS_FIRST);
    return true;
}

static const size_t more_bytes = (HK_EXTENTS - 1) * sizeof(hk_extent);

bool hk_open_more(hak_space *s)
{
    return open_pages(s, &s->extent, down(s->more), up((char *)s->more + more_bytes)) == 0;
}

void hk_extent_unmap(hk_extent *e, void *more)
{
    for (size_t c = 0, n = 1; c < e->chunks_used; c += n, n = 1) {
        if (hk_extent_chunk(e, c)->closed) continue;
        while (c + n < e->chunks_used && !hk_extent_chunk(e, c + n)->closed)
            n++;
        hk_os_close((void *)(e->base + c * HK_CHUNK), n * HK_CHUNK, false);
    }
    for (unsigned a = 0; a < HK_AREAS; a++) {
        size_t n = atomic_load_explicit(&e->labels_open[a], memory_order_relaxed);
        uintptr_t from = down(labels_end(e, a, 0)), to = up(labels_end(e, a, n));
        if (n) hk_os_close((void *)from, to - from, false);
    }
    size_t n = e->records_open;
    uintptr_t bits = down(chunks_end(e, n)), head = down(slabs_end(e, n));
    hk_os_close((void *)bits, up(bits_end(e, n)) - bits, false);
    if (more) hk_os_close((void *)down(more), up((char *)more + more_bytes) - down(more), false);
    hk_os_close((void *)head, up(map_end(e, n)) - head, false);
}

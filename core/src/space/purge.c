#include "space/purge.h"

#include "base/classes.h"
#include "base/patience.h"
#include "space/bitmap.h"
#include "space/open.h"

void hk_purge(hak_space *s, void *p, size_t n, size_t purged_before)
{
    hk_add(&s->os_calls, 1);
    hk_add(&s->purged_bytes, n - purged_before);
    if (hk_os_counts(&s->os) && !hk_may_split(s)) hk_os_discard(p, n);
    else s->os.decommit(s->os.user, p, n);
}

void hk_purge_part(hak_space *s, void *p, size_t n)
{
    hk_add(&s->os_calls, 1);
    hk_add(&s->purged_bytes, n);
    if (hk_os_counts(&s->os)) hk_os_discard(p, n);
    else s->os.decommit(s->os.user, p, n);
}

static bool unused(const hk_chunk *chunk, unsigned unit)
{
    return chunk->free[unit / 64] & ~chunk->dirty[unit / 64] & UINT64_C(1) << unit % 64;
}

/* Free units without pages of their own on both sides of n units; returns how many. */
static unsigned add_unused(const hk_chunk *chunk, unsigned *from, unsigned n)
{
    unsigned first = *from, end = first + n;
    while (first > 0 && unused(chunk, first - 1))
        first--;
    while (end < HK_CHUNK_UNITS && unused(chunk, end))
        end++;
    *from = first;
    return end - first - n;
}

/* Closes n chunks in which nothing is live, or decommits them. */
static void give_chunks(hak_space *s, hk_extent *e, size_t c, size_t n, size_t purged_before)
{
    if (hk_close_chunks(s, e, c, n)) hk_add(&s->purged_bytes, n * HK_CHUNK - purged_before);
    else hk_purge(s, (void *)(e->base + c * HK_CHUNK), n * HK_CHUNK, purged_before);
    for (size_t i = c; i < c + n; i++)
        hk_extent_chunk(e, i)->dirty[0] = hk_extent_chunk(e, i)->dirty[1] = 0;
}

/* Decommits the retained units of a chunk, the highest first, at most `most`, but all of a huge page, which
 * is not split; returns how many. */
static unsigned purge_chunk(hak_space *s, hk_extent *e, size_t c, size_t most)
{
    hk_chunk *chunk = hk_extent_chunk(e, c);
    unsigned done = 0;
    if (chunk->huge) most = HK_CHUNK_UNITS;
    if (s->own && (chunk->free[0] & chunk->free[1]) == ~UINT64_C(0)) {
        unsigned n = hk_mask_count(chunk->dirty);
        if (n && n <= most) {
            give_chunks(s, e, c, 1, (HK_CHUNK_UNITS - n) << HK_UNIT_SHIFT);
            return n;
        }
    }
    while (done < most) {
        uint64_t retained[2] = {chunk->free[0] & chunk->dirty[0], chunk->free[1] & chunk->dirty[1]};
        if (!(retained[0] | retained[1])) break;
        unsigned last = retained[1] ? 127u - (unsigned)__builtin_clzll(retained[1])
                                    : 63u - (unsigned)__builtin_clzll(retained[0]);
        unsigned from = last;
        while (from > 0 && last - from + 1 < most - done &&
               (retained[(from - 1) / 64] >> ((from - 1) % 64) & 1))
            from--;
        unsigned n = last - from + 1;
        hk_mask m = hk_mask_of(from, n);
        chunk->dirty[0] &= ~m.w[0];
        chunk->dirty[1] &= ~m.w[1];
        unsigned more = chunk->huge ? add_unused(chunk, &from, n) : 0;
        hk_purge(s, (void *)(e->base + ((c * HK_CHUNK_UNITS + from) << HK_UNIT_SHIFT)),
                 (size_t)(n + more) << HK_UNIT_SHIFT, (size_t)more << HK_UNIT_SHIFT);
        done += n;
    }
    return done;
}

/* How many chunks below the c-th are retained as a whole, at most n. */
static size_t retained_chunks(const hk_extent *e, size_t c, size_t n)
{
    size_t i = 0;
    for (; i < hk_min(c, n); i++) {
        const hk_chunk *chunk = hk_extent_chunk(e, c - i - 1);
        if ((chunk->free[0] & chunk->dirty[0] & chunk->free[1] & chunk->dirty[1]) != ~UINT64_C(0)) break;
    }
    return i;
}

/* n chunks all of whose units are retained; returns how many units. */
static size_t purge_chunks(hak_space *s, hk_extent *e, size_t c, size_t n)
{
    give_chunks(s, e, c, n, 0);
    return n * HK_CHUNK_UNITS;
}

/* Gives retained units back until `keep` are left or `most` went; returns how many. The caller's buffer stays
 * resident. split = false: it ends where a chunk would be split, unless it is the first. */
static size_t purge_to(hak_space *s, size_t keep, size_t most, bool split)
{
    size_t done = 0;
    for (uint32_t i = s->extents; i > 0; i--) {
        hk_extent *e = hk_extent_number(s, i - 1);
        for (size_t c = e->owned ? e->chunks_used : 0; c > 0;) {
            size_t retained = hk_get(&s->retained_units);
            if (retained <= keep || done >= most) return done;
            size_t want = hk_min(retained - keep, most - done),
                   whole = retained_chunks(e, c, want / HK_CHUNK_UNITS);
            if (!whole && done && !split && retained_chunks(e, c, 1)) return done;
            HK_ASSERT(want > 0 && whole <= c);
            size_t n = whole ? purge_chunks(s, e, c - whole, whole) : purge_chunk(s, e, c - 1, want);
            c -= hk_max(whole, 1);
            HK_ASSERT(n <= retained && retained == hk_get(&s->retained_units));
            hk_set(&s->retained_units, retained - n);
            s->retained_low = (uint32_t)hk_min(s->retained_low, retained - n);
            done += n;
        }
    }
    return done;
}

void hk_purge_bytes(hak_space *s, size_t n)
{
    size_t retained = hk_get(&s->retained_units),
           units = hk_min((n + HK_UNIT - 1) >> HK_UNIT_SHIFT, retained);
    if (units == 0) return;
    purge_to(s, retained - units, units, true);
}

size_t hk_purge_batch(hak_space *s, size_t n)
{
    enum { BATCH = 1024 }; /* units: 16 MiB, which take a millisecond or less */
    size_t retained = hk_get(&s->retained_units), most = hk_min(hk_min(n, retained), BATCH);
    bool last = hk_min(n, retained) == most;
    size_t done = purge_to(s, retained - most, most, last);
    return last || !done ? 0 : n - done; /* none: they are in the caller's buffer */
}

/* A heap that grows and shrinks keeps a share of its size resident. Small heaps keep retained_bytes, because
 * a share of little would be purged and faulted in again all the time. */
static size_t limit(const hak_space *s)
{
    size_t share = hk_get(&s->used_units) * s->retained_percent / 100;
    size_t keep = hk_max(s->retained_bytes >> HK_UNIT_SHIFT, share);
    /* The limit rises by what was purged for it and needed again: by up to a half; with retained_yields, from
     * half the limit up to the limit. */
    return s->retained_yields ? hk_min(keep, keep / 2 + s->limit_missed)
                              : keep + hk_min(keep / 2, s->limit_missed);
}

size_t hk_purge_due(const hak_space *s)
{
    size_t retained = hk_get(&s->retained_units), keep = limit(s);
    return retained > keep ? retained - keep : 0;
}

void hk_purge_to_limit(hak_space *s)
{
    size_t keep = limit(s);
    if (HK_UNLIKELY(hk_get(&s->retained_units) > keep))
        s->limit_purged += purge_to(s, keep - keep / 4, SIZE_MAX, true);
}

/* If a heap at work leaves little unused, that stays: its units are scattered, so each would cost a call, and
 * they are soon wanted again. */
static bool worth_calls(const hak_space *s)
{
    enum { SHARE = 64 };
    return s->retained_low == hk_get(&s->retained_units) ||
           (size_t)s->retained_low * SHARE >= hk_get(&s->used_units);
}

/* Low-water marks: what nobody wanted in a whole period of purge_ns is purged. If units are wanted again
 * before the next purge, it must be unused for twice as many periods from then on: a steady load soon makes
 * no call of the OS. */
void hk_space_tick(hak_space *s, uint64_t now_ns)
{
    hk_lock_take(&s->lock);
    bool first = s->tick_ns == 0 || now_ns < s->tick_ns,
         over = !first && now_ns - s->tick_ns >= hk_get(&s->purge_ns);
    if (over && s->due == 0) {
        size_t clean = hk_get(&s->clean_units);
        if (s->purged && clean != s->clean_before) {
            s->patience = hk_patience_more(s->patience);
            s->purged = false;
        }
        s->quiet = (uint8_t)(s->retained_low ? s->quiet + 1 : 0);
        if (s->quiet > s->patience) {
            s->quiet = 0;
            if (worth_calls(s)) {
                if (s->purged) s->patience = hk_patience_less(s->patience);
                s->purged = true;
                s->clean_before = clean;
                s->due = s->retained_low;
            }
        }
    }
    if (s->due) s->due = (uint32_t)hk_purge_batch(s, s->due);
    if (first || over) {
        s->tick_ns = now_ns;
        if (!s->quiet) s->retained_low = (uint32_t)hk_get(&s->retained_units);
    }
    hk_lock_drop(&s->lock);
}

void hk_space_shrink(hak_space *s, size_t n)
{
    hk_lock_take(&s->lock);
    hk_purge_bytes(s, n);
    hk_lock_drop(&s->lock);
}

/* Whole pages of [from, to), which hold records of free units. */
static void give_records(hak_space *s, const void *from, const void *to)
{
    uintptr_t first = hk_align_up((uintptr_t)from, HK_PAGE), last = (uintptr_t)to & ~(HK_PAGE - 1);
    if (first < last) hk_purge(s, (void *)first, last - first, 0);
}

static void give_labels(hak_space *s, hk_extent *e, size_t from, size_t to)
{
    for (unsigned a = 0; a < HK_AREAS; a++) {
        size_t open = (size_t)e->labels_open[a] * HK_CHUNK_UNITS, end = s->opens ? hk_min(open, to) : to;
        uintptr_t first = e->base + (from << HK_UNIT_SHIFT), last = e->base + (end << HK_UNIT_SHIFT);
        if (from >= end) continue;
        give_records(s, &e->labels[a][first >> hk_area_shift[a]], &e->labels[a][last >> hk_area_shift[a]]);
    }
}

/* Chunks at the end in which nothing is in use or resident are closed, and opened anew when they are needed:
 * slab records, bitmaps and label bytes are then zero again. */
static void close_chunks(hak_space *s, hk_extent *e)
{
    size_t used = e->chunks_used, keep = used, end = hk_min(used * HK_CHUNK_UNITS, e->units);
    for (; keep > 1; keep--) {
        hk_chunk *chunk = hk_extent_chunk(e, keep - 1);
        size_t from = (keep - 1) * HK_CHUNK_UNITS, n = hk_min(HK_CHUNK_UNITS, e->units - from);
        if (hk_mask_count(chunk->free) != n || chunk->dirty[0] | chunk->dirty[1]) break;
        if (chunk->labels) give_labels(s, e, from, from + n);
        if (s->own && !chunk->closed && !hk_close_chunks(s, e, keep - 1, 1)) break;
        chunk->free[0] = chunk->free[1] = 0;
        chunk->longest = 0;
        chunk->closed = false;
        chunk->labels = false;
        chunk->label_areas = 0;
        memset(chunk->label_pages, 0, sizeof chunk->label_pages);
    }
    if (keep == used) return;
    e->chunks_used = (uint32_t)keep;
    size_t from = keep * HK_CHUNK_UNITS;
    give_records(s, hk_extent_slab(e, end - 1), hk_extent_slab(e, from) + 1);
    /* Also in the chunk before, if nothing has to be committed again. */
    hk_chunk *last = hk_extent_chunk(e, keep - 1);
    give_records(
        s, e->bits + (keep - 1) * HK_CHUNK_WORDS + (hk_commits(s) ? HK_CHUNK_WORDS : hk_bitmaps_end(last)),
        hk_extent_bits(e, end));
    if (hk_commits(s) || last->dirty[1] || !last->labels) return;
    from -= last->dirty[0] ? 64u + (unsigned)__builtin_clzll(last->dirty[0]) : HK_CHUNK_UNITS;
    give_labels(s, e, from, keep * HK_CHUNK_UNITS);
}

/* Closes chunks that went back in parts, and of which nothing is live or retained any more. */
static size_t close_free(hak_space *s, hk_extent *e)
{
    size_t n = 0;
    for (size_t c = 0; c < e->chunks_used; c++) {
        const hk_chunk *chunk = hk_extent_chunk(e, c);
        bool is_free = (chunk->free[0] & chunk->free[1]) == ~UINT64_C(0);
        if (is_free && !chunk->closed && !(chunk->dirty[0] | chunk->dirty[1]))
            n += hk_close_chunks(s, e, c, 1);
    }
    return n;
}

/* Whether as many units are retained as the space counts, for assertions. */
static bool retained_right(const hak_space *s)
{
    size_t sum = 0;
    for (uint32_t i = 0; i < s->extents; i++) {
        const hk_extent *e = hk_extent_number(s, i);
        for (size_t c = 0; c < e->chunks_used; c++) {
            const hk_chunk *chunk = hk_extent_chunk(e, c);
            uint64_t w[2] = {chunk->free[0] & chunk->dirty[0], chunk->free[1] & chunk->dirty[1]};
            sum += hk_mask_count(w);
        }
    }
    return sum == hk_get(&s->retained_units);
}

bool hk_purge_for(hak_space *s, size_t n)
{
    size_t before = hk_get(&s->retained_units), closed = 0;
    if (!s->own || n >= (size_t)1 << 46) return false;
    purge_to(s, 0, SIZE_MAX, true);
    for (uint32_t i = 0; i < s->extents; i++)
        closed += close_free(s, hk_extent_number(s, i));
    return before != hk_get(&s->retained_units) || closed;
}

void hk_space_purge(hak_space *s)
{
    hk_lock_take(&s->lock);
    HK_ASSERT(retained_right(s));
    purge_to(s, 0, SIZE_MAX, true);
    for (uint32_t i = 0; i < s->extents; i++)
        if (hk_extent_number(s, i)->owned) {
            close_chunks(s, hk_extent_number(s, i));
            if (s->own) close_free(s, hk_extent_number(s, i));
        }
    HK_ASSERT(retained_right(s));
    hk_lock_drop(&s->lock);
}

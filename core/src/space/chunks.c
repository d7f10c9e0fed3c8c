#include "space/chunks.h"

#include "base/classes.h"
#include "base/mask.h"
#include "space/bitmap.h"
#include "space/calls.h"
#include "space/extent.h"
#include "space/extents.h"
#include "space/open.h"
#include "space/purge.h"

/* Whether a chunk that is opened now is to be a huge page: in a large heap, and in one of an EARLY-th of that
 * size that filled its last two chunks in FAST_NS each, at most a FEW_RUNS-th of them by runs. Such a heap spends
 * a good part of its time on page faults, and will probably fill the next chunk. Many runs speak against that, because
 * a program hardly touches some of them, such as stacks. A clock that stands still proves nothing. */
static bool wants_huge(hak_space *s, size_t committed)
{
    enum { EARLY = 4, FAST_NS = 4000000, FEW_RUNS = 4, BEFORE = 4 };
    size_t from = hk_get(&s->huge_from);
    if (hk_space_wants_huge(s, committed)) return true;
    if (!s->os.huge || from == HAK_NONE) return false;
    /* The times of two chunks before are compared. A small program never asks the clock, whose code would be mapped. */
    if (committed + BEFORE * HK_CHUNK < from / EARLY) return false;
    const hk_opened now = {s->os.clock(s->os.user), s->clean_runs}, before = s->opened[1];
    s->opened[1] = s->opened[0];
    s->opened[0] = now;
    return committed >= from / EARLY && before.ns && now.ns != before.ns &&
           now.ns - before.ns < 2 * FAST_NS &&
           now.clean_runs - before.clean_runs <= 2 * HK_CHUNK_UNITS / FEW_RUNS;
}

/* Records of a chunk whose units are committed one by one. */
static bool commit_records(hak_space *s, const hk_extent *e, size_t c, size_t u, size_t n)
{
    return (c == 0 || hk_call_commit(s, hk_extent_chunk(e, c), sizeof(hk_chunk)) == 0) &&
           hk_call_commit(s, hk_extent_slab(e, u + n - 1), n * sizeof(hk_slab)) == 0 &&
           hk_call_commit(s, hk_extent_bits(e, u), n * (HK_UNIT_BITS / 8)) == 0;
}

/* The pages of a chunk, and what describes it. Where somebody else has the addresses the extent ends. */
static bool open_chunk(hak_space *s, hk_extent *e, size_t c, size_t u, size_t n)
{
    if (!e->owned) return true;
    int failed = 0;
    if (hk_commits(s)) failed = commit_records(s, e, c, u, n) ? 0 : -1;
    else if (s->opens && (failed = hk_open_records(s, e, c)) == 0) failed = hk_open_units(s, e, c);
    if (failed < 0) s->refused = true;
    if (failed > 0) e->chunks_most = e->chunks_used;
    return failed == 0;
}

int hk_chunk_open(hak_space *s, hk_extent *e, size_t c, size_t committed)
{
    bool huge = e->owned && wants_huge(s, committed);
    size_t u = c * HK_CHUNK_UNITS, n = hk_min(HK_CHUNK_UNITS, e->units - u);
    if (!open_chunk(s, e, c, u, n)) return -1;
    hk_chunk *chunk = hk_extent_chunk(e, c);
    hk_mask all = hk_mask_of(0, (unsigned)n);
    memcpy(chunk->free, all.w, sizeof all.w);
    chunk->longest = chunk->retained = (uint8_t)n;
    hk_bitmaps_open(chunk, n);
    e->chunks_used++;
    chunk->huge = huge && !hk_commits(s);
    if (huge) hk_call_huge(s, (void *)(e->base + (u << HK_UNIT_SHIFT)), n << HK_UNIT_SHIFT);
    return 0;
}

void hk_space_populate(hak_space *s, hk_unit_id id, size_t units)
{
    hk_extent *e = hk_extent_of_id(s, id);
    size_t unit = id - e->first;
    if (!s->os.populate || !e->owned || hk_extent_chunk(e, unit / HK_CHUNK_UNITS)->huge) return;
    hk_lock_take(&s->lock);
    hk_add(&s->os_calls, 1);
    hk_lock_drop(&s->lock);
    s->os.populate(s->os.user, (void *)(e->base + (unit << HK_UNIT_SHIFT)), units << HK_UNIT_SHIFT);
}

static void set_map(hk_extent *e, size_t unit, size_t units, uint32_t entry)
{
    for (size_t i = 0; i < units; i++) {
        HK_ASSERT(!hk_read(&e->map[unit + i]) == (entry != 0));
        hk_write(&e->map[unit + i], entry);
    }
}

/* Called with the lock held after fresh units were taken. They mean that units were purged too early, and the
 * limit of retained units rises. With retained_yields, retained units are purged for them at a new peak
 * instead. */
static void count_fresh(hak_space *s, size_t fresh)
{
    size_t used = (hk_get(&s->used_units) << HK_UNIT_SHIFT) + hk_get(&s->mapped_bytes);
    if (s->retained_yields && used > s->used_high) {
        hk_purge_bytes(s, hk_min(fresh << HK_UNIT_SHIFT, used - s->used_high));
        s->used_high = used;
    } else {
        size_t again = hk_min(fresh, s->limit_purged);
        s->limit_purged -= again;
        s->limit_missed += again;
    }
}

static void count_taken(hak_space *s, unsigned n, unsigned dirty)
{
    size_t retained = hk_get(&s->retained_units) - dirty;
    HK_ASSERT(hk_lock_held(&s->lock) && dirty <= n && hk_get(&s->retained_units) >= dirty);
    hk_set(&s->retained_units, retained);
    if (retained < s->retained_low) s->retained_low = (uint32_t)retained;
    hk_add(&s->used_units, n);
    hk_add(&s->clean_units, n - dirty);
    if (s->retained_yields || n != dirty) count_fresh(s, n - dirty);
    if (n != dirty) hk_note_resident(s);
}

static void take_bitmap(hk_extent *e, size_t unit, unsigned kind)
{
    uint32_t c = (uint32_t)(unit / HK_CHUNK_UNITS);
    hk_extent_slab(e, unit)->bits = c * HK_CHUNK_WORDS + hk_bitmap_take(hk_extent_chunk(e, c), kind);
}

/* Opens a chunk again that was closed. If somebody else has its place by now, it is lost. */
static bool reopen(hak_space *s, hk_extent *e, size_t c)
{
    hk_chunk *chunk = hk_extent_chunk(e, c);
    int failed = hk_open_units(s, e, c);
    if (failed < 0) s->refused = true;
    if (failed > 0) chunk->free[0] = chunk->free[1] = 0;
    if (failed) return false;
    chunk->closed = false;
    s->holes++; /* it may be in the middle of one */
    if (chunk->huge) hk_call_huge(s, (void *)(e->base + c * HK_CHUNK), HK_CHUNK);
    return true;
}

hk_unit_id hk_chunk_claim(hak_space *s, hk_extent *e, size_t c, unsigned bit, unsigned n, uint32_t entry,
                          bool *zero)
{
    hk_chunk *chunk = hk_extent_chunk(e, c);
    size_t unit = c * HK_CHUNK_UNITS + bit;
    hk_mask m = hk_mask_of(bit, n);
    HK_ASSERT(c < e->chunks_used && n > 0 && bit + n <= HK_CHUNK_UNITS && !chunk->closed);
    HK_ASSERT((chunk->free[0] & m.w[0]) == m.w[0] && (chunk->free[1] & m.w[1]) == m.w[1]);
    uint64_t dirty[2] = {chunk->dirty[0] & m.w[0], chunk->dirty[1] & m.w[1]};
    unsigned resident = dirty[0] == m.w[0] && dirty[1] == m.w[1] ? n : hk_mask_count(dirty);
    if (resident < n && hk_commits(s) && e->owned &&
        hk_call_commit(s, (void *)(e->base + (unit << HK_UNIT_SHIFT)), (size_t)n << HK_UNIT_SHIFT) != 0) {
        s->refused = true;
        return 0;
    }
    for (unsigned i = 0; i < 2; i++) {
        chunk->free[i] &= ~m.w[i];
        chunk->dirty[i] |= m.w[i];
    }
    count_taken(s, n, resident);
    if (resident < n && chunk->huge) hk_add(&s->clean_huge, n - resident);
    if ((entry & HK_KIND_MASK) < HK_SMALL_CLASSES) take_bitmap(e, unit, entry & HK_KIND_MASK);
    else if ((entry & HK_KIND_MASK) < HK_BINS) s->clean_runs += n - resident;
    set_map(e, unit, n, entry);
    *zero = resident == 0;
    return e->first + (uint32_t)unit;
}

/* A search skips a chunk in which a search failed until more is free there, because most chunks of a large
 * heap are nearly full. */
static hk_unit_id take_in(hak_space *s, hk_extent *e, unsigned n, uint32_t entry, hk_want want,
                          size_t committed, bool *zero)
{
    for (size_t c = 0; c < e->chunks_used; c++) {
        hk_chunk *chunk = hk_extent_chunk(e, c);
        if ((want == HK_WANT_DIRTY ? chunk->retained : chunk->longest) < n) continue;
        uint64_t w[2] = {chunk->free[0], chunk->free[1]};
        uint64_t flip = want == HK_WANT_CLEAN ? ~UINT64_C(0) : 0;
        if (want != HK_WANT_ANY) {
            w[0] &= chunk->dirty[0] ^ flip;
            w[1] &= chunk->dirty[1] ^ flip;
        }
        unsigned bit = hk_mask_row(w, n);
        if (bit < 128) {
            if (HK_UNLIKELY(chunk->closed) && !reopen(s, e, c)) continue; /* others may be open */
            return hk_chunk_claim(s, e, c, bit, n, entry, zero);
        }
        if (want != HK_WANT_CLEAN) chunk->retained = (uint8_t)(n - 1);
        if (want == HK_WANT_ANY) chunk->longest = (uint8_t)(n - 1);
    }
    if (want != HK_WANT_ANY || e->chunks_used >= e->chunks_most) return 0;
    size_t c = e->chunks_used;
    if (hk_chunk_open(s, e, c, committed) != 0 || hk_extent_chunk(e, c)->longest < n) return 0;
    return hk_chunk_claim(s, e, c, 0, n, entry, zero);
}

static hk_unit_id claim_paged(hak_space *s, hk_extent *e, unsigned area, size_t unit, uint32_t entry,
                              bool *zero)
{
    size_t c = unit / HK_CHUNK_UNITS;
    unsigned bit = unit % HK_CHUNK_UNITS;
    if (hk_extent_chunk(e, c)->closed && !reopen(s, e, c)) return 0;
    hk_extent_chunk(e, c)->label_pages[area] |= UINT32_C(1) << bit / hk_units_a_page(area);
    return hk_chunk_claim(s, e, c, bit, 1, entry, zero);
}

/* Looks at few chunks: if these have no unit for the area, any unit will do. */
static hk_unit_id take_paged(hak_space *s, hk_extent *e, unsigned area, uint32_t entry, hk_want want,
                             size_t committed, bool *zero)
{
    enum { LOOKS = 4 };
    size_t looked[LOOKS], looks = 0, dirty = SIZE_MAX, shared = SIZE_MAX;
    bool retained = want != HK_WANT_CLEAN && hk_get(&s->retained_units) > 0;
    for (size_t c = 0; c < e->chunks_used && looks < LOOKS && (retained || shared == SIZE_MAX); c++) {
        hk_chunk *chunk = hk_extent_chunk(e, c);
        if (chunk->longest == 0) continue;
        if (!(chunk->free[0] | chunk->free[1])) {
            chunk->longest = 0;
            continue;
        }
        looked[looks++] = c;
        hk_mask m = {{0, 0}};
        hk_chunk_add_paged(&m, chunk, area);
        uint64_t some[2] = {chunk->free[0] & chunk->dirty[0], chunk->free[1] & chunk->dirty[1]};
        uint64_t both[2] = {some[0] & m.w[0], some[1] & m.w[1]};
        uint64_t near[2] = {chunk->free[0] & ~chunk->dirty[0] & m.w[0],
                            chunk->free[1] & ~chunk->dirty[1] & m.w[1]};
        size_t first = c * HK_CHUNK_UNITS;
        if (retained && (both[0] | both[1]))
            return claim_paged(s, e, area, first + hk_mask_row(both, 1), entry, zero);
        if (dirty == SIZE_MAX && (some[0] | some[1])) dirty = first + hk_mask_row(some, 1);
        if (shared == SIZE_MAX && (near[0] | near[1])) shared = first + hk_mask_row(near, 1);
    }
    size_t unit = shared != SIZE_MAX ? shared : retained ? dirty : SIZE_MAX;
    for (size_t i = 0; i < looks && unit == SIZE_MAX; i++) {
        unsigned row = hk_chunk_page_unused(hk_extent_chunk(e, looked[i]), area);
        if (row < HK_CHUNK_UNITS) unit = looked[i] * HK_CHUNK_UNITS + row;
    }
    if (unit == SIZE_MAX) {
        unit = (size_t)e->chunks_used * HK_CHUNK_UNITS;
        if (looks == LOOKS || e->chunks_used >= e->chunks_most ||
            hk_chunk_open(s, e, e->chunks_used, committed) != 0)
            return 0;
    }
    return claim_paged(s, e, area, unit, entry, zero);
}

hk_unit_id hk_space_take_paged(hak_space *s, hk_extent *e, unsigned area, uint32_t entry, hk_want want,
                               size_t committed, bool *zero)
{
    hk_lock_take(&s->lock);
    hk_unit_id id = take_paged(s, e, area, entry, want, committed, zero);
    hk_lock_drop(&s->lock);
    return id;
}

static hk_unit_id take_any(hak_space *s, hk_extent *near, unsigned n, uint32_t entry, hk_want want,
                           size_t committed, bool *zero)
{
    hk_unit_id id = near ? take_in(s, near, n, entry, want, committed, zero) : 0;
    for (uint32_t i = s->extents; !id && i > 0; i--) {
        hk_extent *e = hk_extent_number(s, i - 1);
        if (e != near) id = take_in(s, e, n, entry, want, committed, zero);
    }
    return id;
}

hk_unit_id hk_space_take(hak_space *s, hk_extent *near, size_t units, uint32_t entry, hk_want want,
                         size_t committed, bool *zero)
{
    unsigned n = (unsigned)units;
    hk_unit_id id = 0;
    hk_lock_take(&s->lock);
    s->refused = false;
    if (want == HK_WANT_CLEAN || (want == HK_WANT_DIRTY && hk_get(&s->retained_units) >= n))
        id = take_any(s, near, n, entry, want, committed, zero);
    if (!id) id = take_any(s, near, n, entry, HK_WANT_ANY, committed, zero);
    if (!id && !s->refused) {
        hk_extent *e = hk_extent_add(s);
        if (e) id = take_in(s, e, n, entry, HK_WANT_ANY, committed, zero);
    }
    hk_lock_drop(&s->lock);
    return id;
}

hk_unit_id hk_space_take_owned(hak_space *s, hk_extent *near, size_t units, uint32_t entry, size_t committed,
                               bool *zero)
{
    unsigned n = (unsigned)units;
    hk_unit_id id = 0;
    hk_lock_take(&s->lock);
    s->refused = false;
    if (near->owned) id = take_in(s, near, n, entry, HK_WANT_ANY, committed, zero);
    for (uint32_t i = s->extents; !id && i > 0; i--) {
        hk_extent *e = hk_extent_number(s, i - 1);
        if (e->owned && e != near) id = take_in(s, e, n, entry, HK_WANT_ANY, committed, zero);
    }
    hk_extent *e = id || s->refused ? NULL : hk_extent_add(s);
    if (e) id = take_in(s, e, n, entry, HK_WANT_ANY, committed, zero);
    hk_lock_drop(&s->lock);
    return id;
}

bool hk_space_extend(hak_space *s, hk_unit_id id, size_t units, size_t more, uint32_t entry)
{
    hk_extent *e = hk_extent_of_id(s, id);
    size_t unit = id - e->first + units, c = unit / HK_CHUNK_UNITS, bit = unit % HK_CHUNK_UNITS;
    bool zero, ok = false;
    if (bit == 0 || bit + more > HK_CHUNK_UNITS) return false;
    hk_lock_take(&s->lock);
    hk_chunk *chunk = hk_extent_chunk(e, c);
    hk_mask m = hk_mask_of((unsigned)bit, (unsigned)more);
    if ((chunk->free[0] & m.w[0]) == m.w[0] && (chunk->free[1] & m.w[1]) == m.w[1])
        ok = hk_chunk_claim(s, e, c, (unsigned)bit, (unsigned)more, entry, &zero) != 0;
    hk_lock_drop(&s->lock);
    return ok;
}

void hk_chunks_give(hak_space *s, hk_extent *e, size_t unit, size_t units, size_t holes)
{
    set_map(e, unit, units, 0);
    if (holes) hk_purge(s, (void *)(e->base + (unit << HK_UNIT_SHIFT)), units << HK_UNIT_SHIFT, holes);
    HK_ASSERT(hk_lock_held(&s->lock) && hk_get(&s->used_units) >= units);
    hk_sub(&s->used_units, units);
    while (units > 0) {
        size_t c = unit / HK_CHUNK_UNITS, bit = unit % HK_CHUNK_UNITS,
               n = hk_min(units, HK_CHUNK_UNITS - bit);
        hk_chunk *chunk = hk_extent_chunk(e, c);
        hk_mask m = hk_mask_of((unsigned)bit, (unsigned)n);
        HK_ASSERT(c < e->chunks_used && !(chunk->free[0] & m.w[0]) && !(chunk->free[1] & m.w[1]));
        HK_ASSERT(!(m.w[0] & ~chunk->dirty[0]) && !(m.w[1] & ~chunk->dirty[1]));
        for (unsigned i = 0; i < 2; i++) {
            chunk->free[i] |= m.w[i];
            if (holes) chunk->dirty[i] &= ~m.w[i];
        }
        chunk->longest = HK_CHUNK_UNITS;
        if (!holes) {
            chunk->retained = HK_CHUNK_UNITS;
            hk_add(&s->retained_units, n);
        }
        unit += n;
        units -= n;
    }
}

static void give_slab(hak_space *s, const hk_slab *slab, size_t holes)
{
    hk_extent *e = hk_extent_of_slab(s, slab);
    size_t unit = hk_extent_unit(e, slab);
    HK_ASSERT(slab->kind >= HK_SMALL_CLASSES || hk_bitmap_zero(e, slab));
    if (slab->kind < HK_SMALL_CLASSES) hk_bitmap_give(hk_extent_chunk(e, unit / HK_CHUNK_UNITS), slab);
    hk_chunks_give(s, e, unit, slab->units, holes);
}

void hk_space_give(hak_space *s, hk_unit_id id, size_t units)
{
    hk_extent *e = hk_extent_of_id(s, id);
    hk_lock_take(&s->lock);
    hk_chunks_give(s, e, id - e->first, units, 0);
    hk_purge_to_limit(s);
    hk_lock_drop(&s->lock);
}

void hk_space_give_slab(hak_space *s, const hk_slab *slab, size_t holes)
{
    hk_lock_take(&s->lock);
    give_slab(s, slab, holes);
    hk_purge_to_limit(s);
    hk_lock_drop(&s->lock);
}

/* Pages go back to the OS when all units are given: whole chunks, so that no huge page is split. */
void hk_space_give_all(hak_space *s, hk_unit_id all)
{
    enum { BATCH = 256 }; /* others wait for the lock meanwhile */
    while (all) {
        hk_lock_take(&s->lock);
        for (unsigned i = 0; all && i < BATCH; i++) {
            const hk_slab *slab = hk_slab_at(s, all);
            give_slab(s, slab, hk_slab_released(slab));
            all = slab->all_next;
        }
        hk_lock_drop(&s->lock);
    }
    for (size_t left = 1; left;) {
        hk_lock_take(&s->lock);
        left = hk_purge_batch(s, hk_purge_due(s));
        hk_lock_drop(&s->lock);
    }
}

/* With the lock held. clean: units that are not resident, from the first chunk that has any. */
static bool set_aside_in(hak_space *s, hk_extent *e, unsigned want, bool clean, hk_aside *r)
{
    for (size_t c = 0; c < e->chunks_used; c++) {
        hk_chunk *chunk = hk_extent_chunk(e, c);
        uint64_t flip = clean ? ~UINT64_C(0) : 0;
        uint64_t w[2] = {chunk->free[0] & (chunk->dirty[0] ^ flip),
                         chunk->free[1] & (chunk->dirty[1] ^ flip)};
        if (!(w[0] | w[1]) || chunk->closed) continue;
        hk_mask m = hk_mask_lowest(w, want);
        for (unsigned i = 0; i < 2; i++) {
            chunk->free[i] &= ~m.w[i];
            chunk->dirty[i] |= m.w[i];
            r->units[i] = m.w[i];
        }
        r->first = e->first + (uint32_t)(c * HK_CHUNK_UNITS);
        r->clean = clean;
        unsigned n = hk_mask_count(m.w);
        count_taken(s, n, clean ? 0 : n);
        return true;
    }
    return false;
}

void hk_space_set_aside(hak_space *s, hk_extent *near, unsigned want, hk_aside *r)
{
    hk_lock_take(&s->lock);
    bool done = hk_get(&s->retained_units) > 0 && set_aside_in(s, near, want, false, r);
    /* Units that need a commit get it when they are used. */
    if (!done && !(hk_commits(s) && near->owned)) set_aside_in(s, near, want, true, r);
    hk_lock_drop(&s->lock);
}

void hk_space_use(hak_space *s, hk_extent *e, hk_unit_id id, unsigned kind)
{
    if (kind >= HK_SMALL_CLASSES) return;
    hk_lock_take(&s->lock);
    take_bitmap(e, id - e->first, kind);
    hk_lock_drop(&s->lock);
}

void hk_space_take_back(hak_space *s, hk_aside *r)
{
    if (hk_aside_empty(r)) return;
    hk_lock_take(&s->lock);
    hk_extent *e = hk_extent_of_id(s, r->first);
    hk_chunk *chunk = hk_extent_chunk(e, (r->first - e->first) / HK_CHUNK_UNITS);
    unsigned n = hk_mask_count(r->units);
    HK_ASSERT(!(chunk->free[0] & r->units[0]) && !(chunk->free[1] & r->units[1]));
    HK_ASSERT(hk_get(&s->used_units) >= n);
    for (unsigned i = 0; i < 2; i++) {
        chunk->free[i] |= r->units[i];
        if (r->clean) chunk->dirty[i] &= ~r->units[i];
        r->units[i] = 0;
    }
    chunk->longest = chunk->retained = HK_CHUNK_UNITS;
    hk_sub(&s->used_units, n);
    if (!r->clean) hk_add(&s->retained_units, n);
    hk_purge_to_limit(s);
    hk_lock_drop(&s->lock);
}

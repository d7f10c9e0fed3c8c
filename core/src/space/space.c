#include "space/space.h"

#include "base/classes.h"
#include "base/mask.h"
#include "base/tuning.h"
#include "space/bitmap.h"
#include "space/extent.h"
#include "space/purge.h"

static void *call_reserve(hak_space *s, size_t n, size_t align)
{
    hk_add(&s->os_calls, 1);
    return s->os.reserve(s->os.user, n, align, s->below);
}

static void call_release(hak_space *s, void *p, size_t n)
{
    hk_add(&s->os_calls, 1);
    s->os.release(s->os.user, p, n);
}

static int call_commit(hak_space *s, void *p, size_t n)
{
    if (!s->os.commit) return 0;
    uintptr_t from = (uintptr_t)p & ~(HK_PAGE - 1), to = hk_align_up((uintptr_t)p + n, HK_PAGE);
    hk_add(&s->os_calls, 1);
    return s->os.commit(s->os.user, (void *)from, to - from);
}

/* counted: bytes of it that went back before. One step, for others look at the sum. */
int hk_space_commit(hak_space *s, void *p, size_t n)
{
    hk_lock_take(&s->lock);
    int failed = call_commit(s, p, n);
    hk_lock_drop(&s->lock);
    return failed;
}

void hk_space_decommit(hak_space *s, void *p, size_t n)
{
    hk_lock_take(&s->lock);
    hk_idle_decommit(s, p, n, 0);
    hk_lock_drop(&s->lock);
}

bool hk_space_wants_huge(const hak_space *s, size_t committed)
{
    return s->os.huge && s->huge_from != HAK_NONE && committed >= s->huge_from;
}

static void call_huge(hak_space *s, void *p, size_t n)
{
    hk_add(&s->os_calls, 1);
    s->os.huge(s->os.user, p, n);
}

void hk_space_huge(hak_space *s, void *p, size_t n)
{
    hk_lock_take(&s->lock);
    call_huge(s, p, n);
    hk_lock_drop(&s->lock);
}

/* With the lock held. */
static void note_resident(hak_space *s)
{
    hk_set(&s->high, hk_max(hk_space_resident(s), hk_get(&s->high)));
}

/* With the lock held. Fresh pages take the place of idle ones. */
static void count_mapped(hak_space *s, size_t n, size_t less)
{
    hk_set(&s->reserved_bytes, hk_get(&s->reserved_bytes) + n - less);
    hk_set(&s->mapped_bytes, hk_get(&s->mapped_bytes) + n - less);
    if (less > n) hk_add(&s->returned_bytes, less - n);
    else hk_idle_shrink(s, n - less);
    note_resident(s);
}

void *hk_space_map(hak_space *s, size_t n, size_t align)
{
    if (s->buffer_only) return NULL;
    hk_lock_take(&s->lock);
    void *p = call_reserve(s, n, align);
    if (p && call_commit(s, p, n) != 0) {
        call_release(s, p, n);
        p = NULL;
    }
    if (p) count_mapped(s, n, 0);
    hk_lock_drop(&s->lock);
    return p;
}

void hk_space_unmap(hak_space *s, void *p, size_t n)
{
    hk_lock_take(&s->lock);
    call_release(s, p, n);
    count_mapped(s, 0, n);
    hk_lock_drop(&s->lock);
}

void *hk_space_remap(hak_space *s, void *p, size_t old_n, size_t n)
{
    if (!s->os.remap) return NULL;
    hk_lock_take(&s->lock);
    hk_add(&s->os_calls, 1);
    void *q = s->os.remap(s->os.user, p, old_n, n, s->below);
    if (q) count_mapped(s, n, old_n);
    hk_lock_drop(&s->lock);
    return q;
}

/* ---- Extents ------------------------------------------------------------------------------------ */

/* Reserves address space, halving the wish until it is granted. The least holds one chunk behind what
 * describes it only where it begins at a chunk's boundary. */
static char *reserve_extent(hak_space *s, size_t *size)
{
    for (size_t n = *size; n >= 2 * HK_CHUNK; n /= 2) {
        char *p = call_reserve(s, n, n < 3 * HK_CHUNK ? HK_CHUNK : HK_PAGE);
        if (p) {
            *size = n;
            return p;
        }
    }
    return NULL;
}

/* With the lock held. NULL = no more address space. */
static hk_extent *add_extent(hak_space *s)
{
    if (s->buffer_only || s->extents == HK_EXTENTS) return NULL;
    hk_extent *e = &s->more[s->extents - 1];
    if (s->extent.owned && call_commit(s, e, sizeof *e) != 0) return NULL;
    size_t n = s->reserve;
    char *p = reserve_extent(s, &n);
    if (!p) return NULL;
    size_t units = hk_units_for(p, n, HK_CHUNK, false, false);
    hk_layout l = hk_lay_out(units, HK_CHUNK, false, false);
    if (units == 0 || s->next_id > UINT32_MAX - units) {
        call_release(s, p, n);
        return NULL;
    }
    hk_extent_init(e, p, n, units, &l, HK_CHUNK);
    /* Whole, once: any pointer may be looked up. */
    if (call_commit(s, e->map, units * sizeof *e->map) != 0) {
        call_release(s, p, n);
        return NULL;
    }
    e->first = s->next_id;
    e->owned = true;
    s->next_id += (uint32_t)units;
    hk_add(&s->reserved_bytes, n);
    if (s->reserve < (size_t)64 << 30) s->reserve *= 4;
    atomic_fetch_add_explicit(&s->extents, 1, memory_order_release);
    return e;
}

void hak_space_options_init(hak_space_options *o, size_t size)
{
    hk_sized_init(o, size);
}

static uintptr_t addresses_below(const hak_space_options *o)
{
    return o->max_address ? o->max_address : HK_POINTERS_BELOW;
}

/* Copies options of any version, which may be NULL; what is wrong with them, NULL = nothing. */
static const char *read_options(hak_space_options *o, hak_os *os, hak_tuning *t,
                                const hak_space_options *given)
{
    static const hak_space_options defaults = HAK_SPACE_OPTIONS_INIT;
    const size_t least = (size_t)128 << 10, most = (size_t)1 << 40;
    if (!hak_sized_copy(o, sizeof *o, given ? given : &defaults))
        return "hak_space_options.size is not set, or more is set than is known";
    hak_os_init(os, sizeof *os);
    const char *error = o->os ? hk_os_read(os, o->os) : NULL;
    if (error) return error;
    o->tuning = hk_tuning_read(t, o->tuning, o->mode, HAK_WORKLOAD_TRACED, &error);
    if (!o->tuning) return error;
    if (o->max_address && o->max_address < (uintptr_t)1 << 24) return "max_address: 0, or at least 2^24";
    if (o->reserve && (o->reserve < (size_t)4 << 20 || o->reserve > most))
        return "reserve: 0, or 4 MiB to 1 TiB";
    if (o->buffer && (o->buffer_size < least || o->buffer_size > most))
        return "buffer_size: 128 KiB to 1 TiB";
    if (!o->buffer && o->buffer_size) return "buffer_size without buffer";
    if (!o->buffer && o->buffer_only) return "buffer_only without buffer";
    uintptr_t at = (uintptr_t)o->buffer, below = addresses_below(o);
    if (at > below || o->buffer_size > below - at) return "buffer: ends above max_address";
    return NULL;
}

const char *hak_space_options_error(const hak_space_options *given)
{
    hak_space_options o;
    hak_os os;
    hak_tuning t;
    return read_options(&o, &os, &t, given);
}

hak_space *hak_space_new(const hak_space_options *given)
{
    hak_space_options options;
    hak_tuning tuning;
    const hak_space_options *o = &options;
    struct hak_space boot = {.extents = 1, .next_id = 1};
    if (read_options(&options, &boot.os, &tuning, given)) return NULL;
    boot.below = addresses_below(o);
    boot.reserve = o->reserve ? o->reserve : (size_t)64 << 30;
    boot.idle_bytes = hk_or_none(o->tuning->idle_bytes);
    boot.idle_percent = hk_or_none(o->tuning->idle_percent);
    boot.idle_ns = o->tuning->idle_ns;
    boot.huge_from = o->tuning->huge_from;
    boot.idle_yields = o->tuning->idle_yields == 1;
    boot.buffer_only = o->buffer_only;
    size_t n = o->buffer ? o->buffer_size : boot.reserve, align = o->buffer ? HK_UNIT : HK_CHUNK, skip = 0;
    char *p = o->buffer ? o->buffer : reserve_extent(&boot, &n);
    if (!p) return NULL;
    if (o->buffer) skip = (size_t)(-(uintptr_t)p & (HK_PAGE - 1));
    size_t units = hk_units_for(p + skip, n - skip, align, true, o->buffer_only);
    hk_layout l = hk_lay_out(units, align, true, o->buffer_only);
    hak_space *s = (hak_space *)(void *)(p + skip + l.head);
    if (units == 0 || (!o->buffer && call_commit(&boot, s, l.map - l.head + units * sizeof(uint32_t)) != 0)) {
        if (!o->buffer) boot.os.release(boot.os.user, p, n);
        return NULL;
    }
    if (o->buffer && boot.reserve > (size_t)4 << 30) boot.reserve = (size_t)4 << 30;
    *s = boot;
    hk_extent_init(&s->extent, p + skip, n - skip, units, &l, align);
    s->extent.first = 1;
    s->extent.owned = !o->buffer;
    s->next_id = 1 + (uint32_t)units;
    s->more = (hk_extent *)(void *)(p + skip + l.more);
    hk_set(&s->big_low, SIZE_MAX);
    hk_set(&s->reserved_bytes, n);
    return s;
}

/* ---- Units -------------------------------------------------------------------------------------- */

static int chunk_open(hak_space *s, hk_extent *e, size_t c, bool huge)
{
    hk_chunk *chunk = hk_extent_chunk(e, c);
    size_t u = c * HK_CHUNK_UNITS, n = hk_min(HK_CHUNK_UNITS, e->units - u);
    if (s->os.commit && e->owned) {
        if (c > 0 && call_commit(s, chunk, sizeof *chunk) != 0) return -1;
        if (call_commit(s, hk_extent_slab(e, u + n - 1), n * sizeof(hk_slab)) != 0) return -1;
        if (call_commit(s, hk_extent_bits(e, u), n * (HK_UNIT_BITS / 8)) != 0) return -1;
    }
    hk_mask all = hk_mask_of(0, (unsigned)n);
    memcpy(chunk->free, all.w, sizeof all.w);
    chunk->longest = (uint8_t)n;
    hk_bitmaps_open(chunk, n);
    e->chunks_used++;
    chunk->huge = e->owned && huge && !s->os.commit;
    if (e->owned && huge) call_huge(s, (void *)(e->base + (u << HK_UNIT_SHIFT)), n << HK_UNIT_SHIFT);
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
    for (size_t i = 0; i < units; i++)
        hk_write(&e->map[unit + i], entry);
}

/* With the lock held, after fresh units were taken: above what was in use before they take the place of idle
 * ones, below it they would be idle ones if these had been kept. */
static void yield_idle(hak_space *s, size_t fresh)
{
    size_t used = (hk_get(&s->used_units) << HK_UNIT_SHIFT) + hk_get(&s->mapped_bytes);
    if (used > s->used_high) {
        hk_idle_shrink(s, hk_min(fresh << HK_UNIT_SHIFT, used - s->used_high));
        s->used_high = used;
    } else {
        size_t again = hk_min(fresh, s->given);
        s->given -= again;
        s->wanted += again;
    }
}

static void count_taken(hak_space *s, unsigned n, unsigned warm)
{
    size_t idle = hk_get(&s->idle_units) - warm;
    hk_set(&s->idle_units, idle);
    if (idle < s->idle_low) s->idle_low = (uint32_t)idle;
    hk_add(&s->used_units, n);
    s->cold += n - warm;
    if (s->idle_yields) yield_idle(s, n - warm);
    if (n != warm) note_resident(s);
}

static void take_bitmap(hk_extent *e, size_t unit, unsigned kind)
{
    uint32_t c = (uint32_t)(unit / HK_CHUNK_UNITS);
    hk_extent_slab(e, unit)->bits = c * HK_CHUNK_WORDS + hk_bitmap_take(hk_extent_chunk(e, c), kind);
}

/* Takes a row of units that is known to be free. 0 = could not be committed. */
static hk_unit_id claim(hak_space *s, hk_extent *e, size_t c, unsigned bit, unsigned n, uint32_t entry,
                        bool *zero)
{
    hk_chunk *chunk = hk_extent_chunk(e, c);
    size_t unit = c * HK_CHUNK_UNITS + bit;
    hk_mask m = hk_mask_of(bit, n);
    uint64_t dirty[2] = {chunk->dirty[0] & m.w[0], chunk->dirty[1] & m.w[1]};
    unsigned warm = dirty[0] == m.w[0] && dirty[1] == m.w[1] ? n : hk_mask_count(dirty);
    if (warm < n && e->owned &&
        call_commit(s, (void *)(e->base + (unit << HK_UNIT_SHIFT)), (size_t)n << HK_UNIT_SHIFT) != 0)
        return 0;
    for (unsigned i = 0; i < 2; i++) {
        chunk->free[i] &= ~m.w[i];
        chunk->dirty[i] |= m.w[i];
    }
    count_taken(s, n, warm);
    if ((entry & HK_KIND_MASK) < HK_SMALL_CLASSES) take_bitmap(e, unit, entry & HK_KIND_MASK);
    set_map(e, unit, n, entry);
    *zero = warm == 0;
    return e->first + (uint32_t)unit;
}

static hk_unit_id take_in(hak_space *s, hk_extent *e, unsigned n, uint32_t entry, hk_want want, bool huge,
                          bool *zero)
{
    size_t chunks = (e->units + HK_CHUNK_UNITS - 1) / HK_CHUNK_UNITS;
    for (size_t c = 0; c < e->chunks_used; c++) {
        hk_chunk *chunk = hk_extent_chunk(e, c);
        if (chunk->longest < n) continue;
        uint64_t w[2] = {chunk->free[0], chunk->free[1]};
        uint64_t flip = want == HK_WANT_COLD ? ~UINT64_C(0) : 0;
        if (want != HK_WANT_ANY) {
            w[0] &= chunk->dirty[0] ^ flip;
            w[1] &= chunk->dirty[1] ^ flip;
        }
        unsigned bit = hk_mask_row(w, n);
        if (bit < 128) return claim(s, e, c, bit, n, entry, zero);
        if (want == HK_WANT_ANY) chunk->longest = (uint8_t)(n - 1);
    }
    if (want != HK_WANT_ANY || e->chunks_used == chunks) return 0;
    size_t c = e->chunks_used;
    if (chunk_open(s, e, c, huge) != 0 || hk_extent_chunk(e, c)->longest < n) return 0;
    return claim(s, e, c, 0, n, entry, zero);
}

static hk_unit_id claim_paged(hak_space *s, hk_extent *e, unsigned area, size_t unit, uint32_t entry,
                              bool *zero)
{
    size_t c = unit / HK_CHUNK_UNITS;
    unsigned bit = unit % HK_CHUNK_UNITS;
    hk_extent_chunk(e, c)->label_pages[area] |= UINT32_C(1) << bit / hk_units_a_page(area);
    return claim(s, e, c, bit, 1, entry, zero);
}

/* Looks at few chunks: where these have no unit for the area, any will do. */
static hk_unit_id take_paged(hak_space *s, hk_extent *e, unsigned area, uint32_t entry, hk_want want,
                             bool huge, bool *zero)
{
    enum { LOOKS = 4 };
    size_t looked[LOOKS], looks = 0, warm = SIZE_MAX, shared = SIZE_MAX;
    bool idle = want != HK_WANT_COLD && hk_get(&s->idle_units) > 0;
    for (size_t c = 0; c < e->chunks_used && looks < LOOKS && (idle || shared == SIZE_MAX); c++) {
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
        if (idle && (both[0] | both[1]))
            return claim_paged(s, e, area, first + hk_mask_row(both, 1), entry, zero);
        if (warm == SIZE_MAX && (some[0] | some[1])) warm = first + hk_mask_row(some, 1);
        if (shared == SIZE_MAX && (near[0] | near[1])) shared = first + hk_mask_row(near, 1);
    }
    size_t unit = shared != SIZE_MAX ? shared : idle ? warm : SIZE_MAX;
    for (size_t i = 0; i < looks && unit == SIZE_MAX; i++) {
        unsigned row = hk_chunk_page_unused(hk_extent_chunk(e, looked[i]), area);
        if (row < HK_CHUNK_UNITS) unit = looked[i] * HK_CHUNK_UNITS + row;
    }
    if (unit == SIZE_MAX) {
        unit = (size_t)e->chunks_used * HK_CHUNK_UNITS;
        if (looks == LOOKS || unit >= e->units || chunk_open(s, e, e->chunks_used, huge) != 0) return 0;
    }
    return claim_paged(s, e, area, unit, entry, zero);
}

hk_unit_id hk_space_take_paged(hak_space *s, hk_extent *e, unsigned area, uint32_t entry, hk_want want,
                               bool huge, bool *zero)
{
    hk_lock_take(&s->lock);
    hk_unit_id id = take_paged(s, e, area, entry, want, huge, zero);
    hk_lock_drop(&s->lock);
    return id;
}

static hk_unit_id take_any(hak_space *s, hk_extent *near, unsigned n, uint32_t entry, hk_want want, bool huge,
                           bool *zero)
{
    hk_unit_id id = near ? take_in(s, near, n, entry, want, huge, zero) : 0;
    for (uint32_t i = s->extents; !id && i > 0; i--) {
        hk_extent *e = hk_extent_number(s, i - 1);
        if (e != near) id = take_in(s, e, n, entry, want, huge, zero);
    }
    return id;
}

hk_unit_id hk_space_take(hak_space *s, hk_extent *near, size_t units, uint32_t entry, hk_want want, bool huge,
                         bool *zero)
{
    unsigned n = (unsigned)units;
    hk_unit_id id = 0;
    hk_lock_take(&s->lock);
    if (want == HK_WANT_COLD || (want == HK_WANT_WARM && hk_get(&s->idle_units) >= n))
        id = take_any(s, near, n, entry, want, huge, zero);
    if (!id) id = take_any(s, near, n, entry, HK_WANT_ANY, huge, zero);
    if (!id) {
        hk_extent *e = add_extent(s);
        if (e) id = take_in(s, e, n, entry, HK_WANT_ANY, huge, zero);
    }
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
        ok = claim(s, e, c, (unsigned)bit, (unsigned)more, entry, &zero) != 0;
    hk_lock_drop(&s->lock);
    return ok;
}

/* With the lock held. */
static void give(hak_space *s, hk_extent *e, size_t unit, size_t units, size_t holes)
{
    set_map(e, unit, units, 0);
    if (holes)
        hk_idle_decommit(s, (void *)(e->base + (unit << HK_UNIT_SHIFT)), units << HK_UNIT_SHIFT, holes);
    hk_sub(&s->used_units, units);
    while (units > 0) {
        size_t c = unit / HK_CHUNK_UNITS, bit = unit % HK_CHUNK_UNITS,
               n = hk_min(units, HK_CHUNK_UNITS - bit);
        hk_chunk *chunk = hk_extent_chunk(e, c);
        hk_mask m = hk_mask_of((unsigned)bit, (unsigned)n);
        for (unsigned i = 0; i < 2; i++) {
            chunk->free[i] |= m.w[i];
            if (holes) chunk->dirty[i] &= ~m.w[i];
        }
        chunk->longest = HK_CHUNK_UNITS;
        if (!holes) hk_add(&s->idle_units, n);
        unit += n;
        units -= n;
    }
}

static void give_slab(hak_space *s, const hk_slab *slab, size_t holes)
{
    hk_extent *e = hk_extent_of_slab(s, slab);
    size_t unit = hk_extent_unit(e, slab);
    if (slab->kind < HK_SMALL_CLASSES) hk_bitmap_give(hk_extent_chunk(e, unit / HK_CHUNK_UNITS), slab);
    give(s, e, unit, slab->units, holes);
}

void hk_space_give(hak_space *s, hk_unit_id id, size_t units)
{
    hk_extent *e = hk_extent_of_id(s, id);
    hk_lock_take(&s->lock);
    give(s, e, id - e->first, units, 0);
    hk_idle_keep(s);
    hk_lock_drop(&s->lock);
}

void hk_space_give_slab(hak_space *s, const hk_slab *slab, size_t holes)
{
    hk_lock_take(&s->lock);
    give_slab(s, slab, holes);
    hk_idle_keep(s);
    hk_lock_drop(&s->lock);
}

/* What goes back to the OS goes when all is given: whole chunks, so that no huge page is split. */
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
        left = hk_idle_batch(s, hk_idle_excess(s));
        hk_lock_drop(&s->lock);
    }
}

/* With the lock held. cold: units that are not resident, from the first chunk that has any. */
static bool reserve_in(hak_space *s, hk_extent *e, unsigned want, bool cold, hk_reserve *r)
{
    for (size_t c = 0; c < e->chunks_used; c++) {
        hk_chunk *chunk = hk_extent_chunk(e, c);
        uint64_t flip = cold ? ~UINT64_C(0) : 0;
        uint64_t w[2] = {chunk->free[0] & (chunk->dirty[0] ^ flip),
                         chunk->free[1] & (chunk->dirty[1] ^ flip)};
        if (!(w[0] | w[1])) continue;
        /* Those that are of no use for a row first. */
        hk_mask single = hk_mask_single(w);
        hk_mask m = hk_mask_lowest(single.w[0] | single.w[1] ? single.w : w, want);
        for (unsigned i = 0; i < 2; i++) {
            chunk->free[i] &= ~m.w[i];
            chunk->dirty[i] |= m.w[i];
            r->units[i] = m.w[i];
        }
        r->first = e->first + (uint32_t)(c * HK_CHUNK_UNITS);
        r->cold = cold;
        unsigned n = hk_mask_count(m.w);
        count_taken(s, n, cold ? 0 : n);
        return true;
    }
    return false;
}

void hk_space_reserve(hak_space *s, hk_extent *near, unsigned want, hk_reserve *r)
{
    hk_lock_take(&s->lock);
    bool done = hk_get(&s->idle_units) > 0 && reserve_in(s, near, want, false, r);
    /* What has to be committed is committed when it is used. */
    if (!done && !(s->os.commit && near->owned)) reserve_in(s, near, want, true, r);
    hk_lock_drop(&s->lock);
}

void hk_space_use(hak_space *s, hk_extent *e, hk_unit_id id, unsigned kind)
{
    if (kind >= HK_SMALL_CLASSES) return;
    hk_lock_take(&s->lock);
    take_bitmap(e, id - e->first, kind);
    hk_lock_drop(&s->lock);
}

void hk_space_unreserve(hak_space *s, hk_reserve *r)
{
    if (hk_reserve_empty(r)) return;
    hk_lock_take(&s->lock);
    hk_extent *e = hk_extent_of_id(s, r->first);
    hk_chunk *chunk = hk_extent_chunk(e, (r->first - e->first) / HK_CHUNK_UNITS);
    unsigned n = hk_mask_count(r->units);
    for (unsigned i = 0; i < 2; i++) {
        chunk->free[i] |= r->units[i];
        if (r->cold) chunk->dirty[i] &= ~r->units[i];
        r->units[i] = 0;
    }
    chunk->longest = HK_CHUNK_UNITS;
    hk_sub(&s->used_units, n);
    if (!r->cold) hk_add(&s->idle_units, n);
    hk_idle_keep(s);
    hk_lock_drop(&s->lock);
}

/* A unit for label bytes, with the lock held. false = a block has it. */
static bool set_aside(hak_space *s, hk_extent *e, size_t unit)
{
    size_t c = unit / HK_CHUNK_UNITS, bit = unit % HK_CHUNK_UNITS;
    if (e->map[unit]) return e->map[unit] == HK_KIND_LABELS;
    while (e->chunks_used <= c)
        if (chunk_open(s, e, e->chunks_used, false) != 0) return false;
    bool zero;
    if (!(hk_extent_chunk(e, c)->free[bit / 64] >> bit % 64 & 1)) return false; /* some context's reserve */
    return claim(s, e, c, (unsigned)bit, 1, HK_KIND_LABELS, &zero) != 0;
}

void hk_space_labels_begin(hak_space *s)
{
    hk_extent *e = &s->extent; /* no other is in a buffer */
    if (e->owned) return;
    hk_lock_take(&s->lock);
    if (s->label_users++ == 0)
        for (size_t unit = e->label_first; unit < e->units; unit++)
            set_aside(s, e, unit);
    hk_lock_drop(&s->lock);
}

void hk_space_labels_end(hak_space *s)
{
    hk_extent *e = &s->extent;
    if (e->owned) return;
    hk_lock_take(&s->lock);
    if (--s->label_users == 0)
        for (size_t unit = e->label_first; unit < e->units; unit++)
            if (e->map[unit] == HK_KIND_LABELS) give(s, e, unit, 1, 0);
    hk_lock_drop(&s->lock);
}

static int labels_in_buffer(hak_space *s, hk_extent *e, size_t unit, unsigned kind, size_t units)
{
    uintptr_t from = e->base + (unit << HK_UNIT_SHIFT), last = from + (units << HK_UNIT_SHIFT) - 1;
    unsigned area = hk_area_of(kind);
    size_t at = ((uintptr_t)&e->labels[area][from >> hk_area_shift[area]] - e->base) >> HK_UNIT_SHIFT,
           end = ((uintptr_t)&e->labels[area][last >> hk_area_shift[area]] - e->base) >> HK_UNIT_SHIFT;
    bool ok = true;
    hk_lock_take(&s->lock);
    for (; at <= end && ok; at++)
        ok = set_aside(s, e, at);
    hk_lock_drop(&s->lock);
    return ok ? 0 : -1;
}

int hk_space_labels(hak_space *s, hk_unit_id id, unsigned kind, size_t units)
{
    hk_extent *e = hk_extent_of_id(s, id);
    if (!e->owned) return labels_in_buffer(s, e, id - e->first, kind, units);
    size_t c = (id - e->first) / HK_CHUNK_UNITS;
    hk_chunk *chunk = hk_extent_chunk(e, c);
    if (atomic_load_explicit(&chunk->labels, memory_order_acquire)) return 0;
    hk_lock_take(&s->lock);
    int failed = 0;
    for (unsigned a = chunk->label_areas; s->os.commit && a < HK_AREAS && !failed; a++) {
        uintptr_t from = e->base + c * HK_CHUNK;
        uint8_t *first = &e->labels[a][from >> hk_area_shift[a]];
        failed = call_commit(s, first, HK_CHUNK >> hk_area_shift[a]);
        if (!failed) chunk->label_areas++;
    }
    if (!failed) atomic_store_explicit(&chunk->labels, true, memory_order_release);
    hk_lock_drop(&s->lock);
    return failed;
}

/* Spaces: their options, and the extents that they reserve. */
#include "space/space.h"

#include "base/classes.h"
#include "base/tuning.h"
#include "space/chunks.h"
#include "space/open.h"
#include "space/pages.h"

/* The least holds one chunk behind what describes it only where it begins at a chunk's boundary. */
static char *reserve_at_once(hak_space *s, size_t n)
{
    return hk_call_reserve(s, n, n < 3 * HK_CHUNK ? HK_CHUNK : HK_PAGE);
}

/* Reserves address space, halving the wish until it is granted. What was not granted whole leaves as much to
 * others: to stacks of threads, libraries, and blocks with mappings of their own. */
static char *reserve_extent(hak_space *s, size_t *size)
{
    for (size_t n = *size; n >= 2 * HK_CHUNK; n /= 2) {
        char *p = reserve_at_once(s, n);
        if (!p) continue;
        bool share = n < *size && n >= 4 * HK_CHUNK;
        *size = share ? n / 2 : n;
        if (!share) return p;
        hk_call_release(s, p, n);
        return reserve_at_once(s, n / 2);
    }
    return NULL;
}

/* The record of a further extent lies in the first one. */
static bool open_record(hak_space *s, hk_extent *e)
{
    if (!s->extent.owned) return true;
    if (!s->extent.grows) return hk_call_open(s, e, sizeof *e) == 0;
    if (!s->more_open) s->more_open = hk_open_more(s);
    return s->more_open;
}

/* An extent that grows. */
static bool grow_another(hak_space *s, hk_extent *e)
{
    hk_layout l;
    if (s->next_id > UINT32_MAX - (hk_os_reserve(&s->os) >> HK_UNIT_SHIFT)) return false;
    *e = (hk_extent){.base = 0};
    if (!hk_extent_place(s, e, false, &l)) return false;
    e->first = s->next_id;
    s->next_id += e->units;
    atomic_fetch_add_explicit(&s->extents, 1, memory_order_release);
    return true;
}

hk_extent *hk_extent_add(hak_space *s)
{
    HK_ASSERT(s->extents > 0 && s->extents <= HK_EXTENTS && hk_lock_held(&s->lock));
    if (s->buffer_only || s->extents == HK_EXTENTS) return NULL;
    hk_extent *e = &s->more[s->extents - 1];
    if (!open_record(s, e)) return NULL;
    if (s->grows && grow_another(s, e)) return e;
    size_t n = s->reserve;
    char *p = reserve_extent(s, &n);
    if (!p) return NULL;
    size_t units = hk_units_for(p, n, HK_CHUNK, false, false);
    hk_layout l = hk_lay_out(units, HK_CHUNK, false, false);
    if (units == 0 || s->next_id > UINT32_MAX - units) {
        hk_call_release(s, p, n);
        return NULL;
    }
    hk_extent_init(e, p, n, units, &l, HK_CHUNK);
    /* All at once: any pointer may be looked up. */
    if (hk_call_open(s, e->map, units * sizeof *e->map) != 0) {
        hk_call_release(s, p, n);
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
static const char *read_options(hak_space_options *o, hak_os *os, hak_tuning *t, uint32_t *said,
                                const hak_space_options *given)
{
    static const hak_space_options defaults = HAK_SPACE_OPTIONS_INIT;
    const size_t least = (size_t)128 << 10, most = (size_t)1 << 40;
    if (!hak_sized_copy(o, sizeof *o, given ? given : &defaults))
        return "hak_space_options.size is not set, or more is set than is known";
    const char *error = hk_os_read(os, o->os);
    if (error) return error;
    o->tuning = hk_tuning_read(t, o->tuning, o->mode, HAK_WORKLOAD_TRACED, said, &error);
    bool guards = *said >> offsetof(hak_tuning, guard_slots) / sizeof(size_t) & 1;
    if (!o->tuning) return error;
    if (guards && !os->protect) return "tuning.guard_slots: the table hak_os has no protect";
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

const char *(hak_space_options_error)(const hak_space_options *given)
{
    hak_space_options o;
    hak_os os;
    hak_tuning t;
    uint32_t said;
    return read_options(&o, &os, &t, &said, given);
}

/* The rest of a space whose first extent is there. */
static void begin(hak_space *s, const hak_space_options *o, uint32_t said, const hk_layout *l)
{
    hk_space_numbers_begin(s, o->tuning, said, o->policy);
    s->extent.first = 1;
    s->next_id = 1 + s->extent.units;
    s->more = (hk_extent *)(void *)(s->extent.reserved + l->more);
    hk_set(&s->big_low, SIZE_MAX);
}

hak_space *(hak_space_new)(const hak_space_options *given)
{
    hak_space_options options;
    hak_tuning tuning;
    uint32_t said;
    const hak_space_options *o = &options;
    struct hak_space boot = {.extents = 1, .next_id = 1};
    if (read_options(&options, &boot.os, &tuning, &said, given)) return NULL;
    boot.below = addresses_below(o);
    boot.reserve = o->reserve ? o->reserve : hk_os_reserve(&boot.os);
    boot.buffer_only = o->buffer_only;
    boot.opens = hk_os_opens(&boot.os);
    boot.own = hk_os_own(&boot.os);
    /* Lower bounds leave too little room. */
    boot.grows = boot.own && !o->reserve && boot.below >= HK_POINTERS_BELOW;
    hk_layout l;
    if (!o->buffer && boot.grows && hk_extent_place(&boot, &boot.extent, true, &l)) {
        hak_space *s = (hak_space *)(void *)(boot.extent.reserved + l.head);
        *s = boot;
        begin(s, o, said, &l);
        return s;
    }
    size_t n = o->buffer ? o->buffer_size : boot.reserve, align = o->buffer ? HK_UNIT : HK_CHUNK, skip = 0;
    char *p = o->buffer ? o->buffer : reserve_extent(&boot, &n);
    if (!p) return NULL;
    if (o->buffer) skip = (size_t)(-(uintptr_t)p & (HK_PAGE - 1));
    size_t units = hk_units_for(p + skip, n - skip, align, true, o->buffer_only);
    l = hk_lay_out(units, align, true, o->buffer_only);
    hak_space *s = (hak_space *)(void *)(p + skip + l.head);
    size_t first = l.map - l.head + units * sizeof(uint32_t);
    if (units == 0 || (!o->buffer && hk_call_open(&boot, s, first) != 0)) {
        if (!o->buffer) boot.os.release(boot.os.user, p, n);
        return NULL;
    }
    if (o->buffer && boot.reserve > (size_t)4 << 30) boot.reserve = (size_t)4 << 30;
    hk_extent_init(&boot.extent, p + skip, n - skip, units, &l, align);
    boot.extent.owned = !o->buffer;
    hk_set(&boot.reserved_bytes, n);
    *s = boot;
    begin(s, o, said, &l);
    return s;
}

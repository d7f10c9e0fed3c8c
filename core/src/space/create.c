/* Reads the options of a space, and begins and ends it. */
#include "space/space.h"

#include "base/settings.h"
#include "space/calls.h"
#include "space/extents.h"
#include "space/open.h"

void hak_space_options_init(hak_space_options *o, size_t size)
{
    hk_sized_init(o, size);
}

static uintptr_t addresses_below(const hak_space_options *o)
{
    return o->max_address ? o->max_address : HK_POINTERS_BELOW;
}

/* Copies options of any version, which may be NULL; what is wrong with them, NULL = nothing. */
static const char *read_space_options(hak_space_options *o, hak_os *os, hak_tuning *t, uint32_t *given,
                                      const hak_space_options *host)
{
    static const hak_space_options defaults = HAK_SPACE_OPTIONS_INIT;
    const size_t least = (size_t)128 << 10, most = (size_t)1 << 40;
    if (!hak_sized_copy(o, sizeof *o, host ? host : &defaults))
        return "hak_space_options.size is not set, or more is set than is known";
    const char *error = hk_os_read(os, o->os);
    if (error) return error;
    o->tuning = hk_settings_read(t, o->tuning, o->mode, HAK_WORKLOAD_TRACED, given, &error);
    bool guards = *given >> HK_SETTING_guard_slots & 1;
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

const char *(hak_space_options_error)(const hak_space_options *host)
{
    hak_space_options o;
    hak_os os;
    hak_tuning t;
    uint32_t given;
    return read_space_options(&o, &os, &t, &given, host);
}

/* The rest of a space whose first extent is there. */
static void begin(hak_space *s, const hak_space_options *o, uint32_t given, const hk_layout *l)
{
    hk_space_settings_begin(s, o->tuning, given, o->policy);
    s->extent.first = 1;
    s->next_id = 1 + s->extent.units;
    s->more = (hk_extent *)(void *)(s->extent.reserved + l->more);
    hk_set(&s->big_low, SIZE_MAX);
}

hak_space *(hak_space_new)(const hak_space_options *host)
{
    hak_space_options options;
    hak_tuning tuning;
    uint32_t given;
    const hak_space_options *o = &options;
    struct hak_space boot = {.extents = 1, .next_id = 1};
    if (read_space_options(&options, &boot.os, &tuning, &given, host)) return NULL;
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
        begin(s, o, given, &l);
        return s;
    }
    size_t n = o->buffer ? o->buffer_size : boot.reserve, align = o->buffer ? HK_UNIT : HK_CHUNK, skip = 0;
    char *p = o->buffer ? o->buffer : hk_extent_reserve(&boot, &n);
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
    begin(s, o, given, &l);
    return s;
}

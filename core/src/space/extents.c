#include "space/extents.h"

#include "space/calls.h"
#include "space/open.h"

/* Reserves an extent. The smallest one has room for its records and for one chunk behind them only if it begins
 * at a chunk's boundary. */
static char *reserve_at_once(hak_space *s, size_t n)
{
    return hk_call_reserve(s, n, n < 3 * HK_CHUNK ? HK_CHUNK : HK_PAGE);
}

char *hk_extent_reserve(hak_space *s, size_t *size)
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
    char *p = hk_extent_reserve(s, &n);
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

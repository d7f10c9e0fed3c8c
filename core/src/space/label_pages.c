/* Makes room for label bytes: commits it by chunk in an extent of the OS; in a caller's buffer, sets units at
 * its end aside while there are labels. */
#include "base/classes.h"
#include "space/calls.h"
#include "space/chunks.h"
#include "space/open.h"

/* A unit for label bytes, with the lock held. false = a block has it. */
static bool set_aside(hak_space *s, hk_extent *e, size_t unit)
{
    size_t c = unit / HK_CHUNK_UNITS, bit = unit % HK_CHUNK_UNITS;
    uint32_t entry = hk_read(&e->map[unit]); /* a context takes units that it set aside without the lock */
    if (entry) return entry == HK_KIND_LABELS;
    while (e->chunks_used <= c)
        if (hk_chunk_open(s, e, e->chunks_used, 0) != 0) return false;
    bool zero;
    if (!(hk_extent_chunk(e, c)->free[bit / 64] >> bit % 64 & 1)) return false; /* set aside by a context */
    return hk_chunk_claim(s, e, c, (unsigned)bit, 1, HK_KIND_LABELS, &zero) != 0;
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
    HK_ASSERT(s->label_users > 0);
    if (--s->label_users == 0)
        for (size_t unit = e->label_first; unit < e->units; unit++)
            if (hk_read(&e->map[unit]) == HK_KIND_LABELS) hk_chunks_give(s, e, unit, 1, 0);
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
    unsigned area = hk_area_of(kind);
    bool open = !s->opens || c < atomic_load_explicit(&e->labels_open[area], memory_order_acquire);
    if (open && atomic_load_explicit(&chunk->labels, memory_order_acquire)) return 0;
    hk_lock_take(&s->lock);
    int failed = s->opens ? hk_open_labels(s, e, area, c) : 0;
    for (unsigned a = chunk->label_areas; hk_commits(s) && a < HK_AREAS && !failed; a++) {
        uintptr_t from = e->base + c * HK_CHUNK;
        uint8_t *first = &e->labels[a][from >> hk_area_shift[a]];
        failed = hk_call_commit(s, first, HK_CHUNK >> hk_area_shift[a]);
        if (!failed) chunk->label_areas++;
    }
    if (!failed) atomic_store_explicit(&chunk->labels, true, memory_order_release);
    hk_lock_drop(&s->lock);
    return failed;
}

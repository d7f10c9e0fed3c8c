/* Windows: what each stack was at when they began. A stack has a new value only where it changed since the
 * mark before. Windows that the clock begins are 32 at most: then every second one is joined with the one
 * before, and the next ones are twice as long, so that they cover the whole time in windows of one length. */
#include "profile/profile.h"

enum { AT_HAND = 64, THINNED_LEAST = 4 };

#define LIES_AS_IN_THE_STACK(member, nth)                                                                    \
    _Static_assert(offsetof(hk_mark_value, member) == nth * sizeof(double) &&                                \
                       offsetof(hk_sums, member) == nth * sizeof(double),                                    \
                   "is_changed() compares four numbers at once")
LIES_AS_IN_THE_STACK(alloc_blocks, 0);
LIES_AS_IN_THE_STACK(alloc_bytes, 1);
LIES_AS_IN_THE_STACK(live_blocks, 2);
LIES_AS_IN_THE_STACK(live_bytes, 3);

/* ---- Values --------------------------------------------------------------------------------------- */

/* A mark looks at every stack: what follows is compiled for each kind of profile. */
HK_INLINE hk_mark_value value_now(bool counted, const hk_stack *stack)
{
    if (counted) return hk_tallied_now(stack);
    const hk_sums *s = &((const hk_sampled *)stack)->sums;
    return (hk_mark_value){s->alloc_blocks, s->alloc_bytes, s->live_blocks,
                           s->live_bytes,   s->alloc_var,   s->freed_var};
}

/* Nothing is allocated or freed without one of these. A shrink in place changes live bytes alone. */
HK_INLINE bool is_changed(bool counted, const hk_stack *s)
{
    static const hk_mark_value none;
    uint64_t was[4], is[4];
    memcpy(was, s->values ? &s->values->at : &none, sizeof was);
    if (counted) {
        const hk_mark_value now = value_now(true, s);
        memcpy(is, &now, sizeof is);
    } else {
        memcpy(is, &((const hk_sampled *)s)->sums, sizeof is);
    }
    return (was[0] ^ is[0]) | (was[1] ^ is[1]) | (was[2] ^ is[2]) | (was[3] ^ is[3]);
}

HK_INLINE size_t count_changed(const hk_profile *k, bool counted)
{
    size_t changed = 0;
    for (const hk_stack *s = k->oldest; s; s = hk_stack_after(k, counted, s))
        changed += is_changed(counted, s);
    return changed;
}

HK_INLINE void keep_changed(hk_profile *k, bool counted, uint64_t serial)
{
    for (hk_stack *s = k->oldest; s; s = hk_stack_after(k, counted, s)) {
        if (!is_changed(counted, s)) continue;
        hk_value *v = k->spare_values;
        k->spare_values = v->before;
        k->spare_value_count--;
        *v = (hk_value){s->values, serial, value_now(counted, s)};
        s->values = v;
    }
}

static void drop_value(hk_profile *k, hk_value *v)
{
    v->before = k->spare_values;
    k->spare_values = v;
    k->spare_value_count++;
}

hk_mark_value hk_profile_value_at(const hk_mark *m, const hk_stack *s)
{
    const hk_value *v = s->values;
    while (v && v->serial > m->serial)
        v = v->before;
    return v ? v->at : (hk_mark_value){0};
}

hk_mark_value hk_profile_value(const hk_profile *k, const hk_stack *s, uint32_t number)
{
    const hk_mark *m = k->marks;
    if (!m || number > m->number) return number ? value_now(k->counted, s) : (hk_mark_value){0};
    while (m && m->number != number)
        m = m->before;
    return m ? hk_profile_value_at(m, s) : (hk_mark_value){0};
}

/* ---- Marks ---------------------------------------------------------------------------------------- */

/* The lock is held afterwards. NULL = no room: the mark's, or that of the values. */
static hk_mark *take_mark(hk_profile *k, size_t most_bytes)
{
    hk_profile_lock(k);
    hk_mark *m = k->spare_marks;
    if (m) k->spare_marks = m->before;
    hk_profile_unlock(k);
    if (!m) m = hk_profile_room(k, sizeof *m);
    else hk_profile_lock(k);
    if (!m) return NULL;
    for (;;) {
        hk_profile_fold(k);
        size_t changed = k->counted ? count_changed(k, true) : count_changed(k, false);
        if (changed <= k->spare_value_count) return m;
        size_t more = changed - k->spare_value_count, wanted = changed + (k->memory ? AT_HAND : 0);
        bool within = k->value_bytes + more * sizeof(hk_value) <= most_bytes;
        hk_profile_unlock(k);
        if (within && hk_profile_values(k, wanted)) continue;
        if (!within) hk_profile_lock(k);
        m->before = k->spare_marks;
        k->spare_marks = m;
        return NULL;
    }
}

static uint32_t begin_window(hk_profile *k, const char *name, const hak_profile_window *now,
                             size_t most_bytes)
{
    hk_mark *m = take_mark(k, most_bytes);
    if (m) {
        memset(m, 0, sizeof *m);
        m->before = k->marks;
        m->serial = ++k->serial;
        m->at_ns = hk_profile_clock(k);
        m->born_ns = k->now_ns > m->at_ns ? k->now_ns : m->at_ns;
        k->now_ns = m->born_ns + 1;
        m->live_bytes = now->live_bytes;
        m->committed_bytes = now->committed_bytes;
        m->resident_bytes = now->resident_bytes;
        m->number = k->marks ? k->marks->number + 1 : 1;
        if (k->counted) keep_changed(k, true, m->serial);
        else keep_changed(k, false, m->serial);
        if (name) strncpy(m->name, name, sizeof m->name - 1);
        k->marks = m;
    }
    uint32_t number = m ? m->number : 0;
    hk_profile_unlock(k);
    return number;
}

/* ---- By the clock --------------------------------------------------------------------------------- */

/* Values that no mark asks for any more. */
static void forget_values(hk_profile *k, hk_stack *s)
{
    const hk_mark *m = k->marks;
    uint64_t above = UINT64_MAX;
    for (hk_value **link = &s->values, *v; (v = *link) != NULL;) {
        while (m && m->serial >= above)
            m = m->before;
        above = v->serial;
        if (m && m->serial >= v->serial) {
            link = &v->before;
        } else {
            *link = v->before;
            drop_value(k, v);
        }
    }
}

/* Joins windows with those before, but of each `of` marks, counted from the start, the last one stays; 0 =
 * none stays. */
static void join(hk_profile *k, uint32_t of)
{
    for (hk_mark **link = &k->marks, *m; (m = *link) != NULL;) {
        if (of != 0 && m->number % of == 0) {
            m->number /= of;
            link = &m->before;
        } else {
            *link = m->before;
            m->before = k->spare_marks;
            k->spare_marks = m;
        }
    }
    HK_EACH_STACK(k, s)
    {
        forget_values(k, s);
    }
}

/* A clock may stand at its end. */
static uint64_t later(uint64_t at_ns, uint64_t ns)
{
    return at_ns < UINT64_MAX - ns ? at_ns + ns : UINT64_MAX;
}

static void thin(hk_profile *k)
{
    join(k, 2);
    k->window_ns *= 2;
    k->window_due_ns = later(k->marks ? k->marks->at_ns : k->started_ns, k->window_ns);
}

static uint32_t windows(const hk_profile *k)
{
    return k->marks ? k->marks->number : 0;
}

/* Windows of the program's own go by its work: those of the clock end with the first one, so that numbers of
 * windows stay. */
uint32_t hk_profile_mark(hk_profile *k, const char *name, const hak_profile_window *now)
{
    hk_profile_lock(k);
    if (k->window_ns) join(k, 0);
    k->window_ns = 0;
    k->window_due_ns = UINT64_MAX;
    hk_profile_unlock(k);
    return begin_window(k, name, now, SIZE_MAX);
}

/* Values of these windows take up to half of the table: stacks come first. */
void hk_profile_turn(hk_profile *k)
{
    uint64_t clock = hk_profile_clock(k);
    hk_profile_lock(k);
    bool due = k->window_ns && atomic_load(&k->running) && clock >= k->window_due_ns;
    if (due && windows(k) >= HK_WINDOWS_TIMED) {
        thin(k);
        due = clock >= k->window_due_ns;
    }
    /* Before the lock is dropped, so that one thread alone begins the window. */
    if (due) k->window_due_ns = later(clock, k->window_ns);
    size_t (*resident)(void) = k->resident, most = k->table_bytes / 2;
    hk_profile_unlock(k);
    if (!due) return;
    /* A sum that threads add to may be below 0 for a moment. */
    ptrdiff_t live = (ptrdiff_t)hk_get(k->live);
    const hak_profile_window now = {
        .live_bytes = live > 0 ? (size_t)live : 0,
        .committed_bytes = k->heaps ? atomic_load(&k->heaps->used) : hk_get(&k->ctx->account.committed),
        .resident_bytes = resident ? resident() : 0,
    };
    if (begin_window(k, NULL, &now, most)) return;
    hk_profile_lock(k);
    if (k->window_ns && windows(k) >= THINNED_LEAST) thin(k);
    hk_profile_unlock(k);
}

/* Windows: keeps the counts that each stack had when a window began. */
#include "profile/profile.h"

static hk_mark_value value_now(const hk_stack *s)
{
    return (hk_mark_value){s->live_blocks, s->live_bytes, s->alloc_blocks,
                           s->alloc_bytes, s->alloc_var,  s->freed_var};
}

uint32_t hk_profile_mark(hk_profile *k, const char *name, const hak_profile_window *now)
{
    hk_profile_lock(k);
    hk_profile_fold(k);
    size_t stacks = k->stack_count;
    hk_profile_unlock(k);
    hk_mark *m = hk_profile_room(k, sizeof *m + stacks * sizeof *m->values);
    if (m) {
        memset(m, 0, sizeof *m);
        m->before = k->marks;
        m->at_ns = hk_profile_clock(k);
        m->born_ns = k->now_ns > m->at_ns ? k->now_ns : m->at_ns;
        k->now_ns = m->born_ns + 1;
        m->live_bytes = now->live_bytes;
        m->committed_bytes = now->committed_bytes;
        m->resident_bytes = now->resident_bytes;
        m->number = k->marks ? k->marks->number + 1 : 1;
        /* Stacks that came since the count begin at 0, as stacks to come do. */
        HK_EACH_STACK(k, s)
        {
            if (m->stacks == stacks) break;
            m->values[m->stacks++] = value_now(s);
        }
        if (name) strncpy(m->name, name, sizeof m->name - 1);
        k->marks = m;
    }
    uint32_t number = m ? m->number : 0;
    hk_profile_unlock(k);
    return number;
}

hk_mark_value hk_profile_value_at(const hk_mark *m, const hk_stack *s)
{
    return s->id <= m->stacks ? m->values[s->id - 1] : (hk_mark_value){0};
}

hk_mark_value hk_profile_value(const hk_profile *k, const hk_stack *s, uint32_t number)
{
    const hk_mark *m = k->marks;
    if (!m || number > m->number) return number ? value_now(s) : (hk_mark_value){0};
    while (m && m->number != number)
        m = m->before;
    return m ? hk_profile_value_at(m, s) : (hk_mark_value){0};
}

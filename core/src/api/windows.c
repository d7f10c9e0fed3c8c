/* Begins windows of a profile, and tells what grew over them. */
#include "api/profile.h"

#include "base/real.h"

int hak_profile_mark(hak_ctx *ctx, const char *name)
{
    hk_profile *k = hk_profile_of(ctx);
    hak_stats stats = {.size = sizeof stats};
    if (!k || hak_ctx_stats(ctx, &stats) != 0) return -1;
    const hak_profile_window now = {.live_bytes = stats.live_bytes,
                                    .committed_bytes = stats.committed_bytes,
                                    .resident_bytes = k->resident ? k->resident() : 0};
    uint32_t number = hk_profile_mark(k, name, &now);
    return number ? (int)number : -2;
}

int hak_profile_turn(hak_ctx *ctx)
{
    hk_profile *k = hk_profile_of(ctx);
    if (!k) return -1;
    hk_profile_turn(k);
    return 0;
}

static uint32_t windows_of(hk_profile *k)
{
    hk_profile_lock(k);
    uint32_t n = k->marks ? k->marks->number : 0;
    hk_profile_unlock(k);
    return n;
}

int hak_profile_marks(const hak_ctx *ctx, hak_profile_window *out, size_t count)
{
    hk_profile *k = hk_profile_of(ctx);
    if (!k) return -1;
    hk_profile_lock(k);
    const hk_mark *m = k->marks;
    uint32_t n = m ? m->number : 0;
    for (; m; m = m->before) {
        if (m->number > count) continue;
        /* The name of one that the clock began may be another one's later. */
        out[m->number - 1] = (hak_profile_window){.size = sizeof *out,
                                                  .name = k->window_ns ? "" : m->name,
                                                  .at_ns = m->at_ns,
                                                  .live_bytes = m->live_bytes,
                                                  .committed_bytes = m->committed_bytes,
                                                  .resident_bytes = m->resident_bytes};
    }
    hk_profile_unlock(k);
    return (int)n;
}

/* false = nothing was allocated or freed. */
static bool difference(const hk_profile *k, const hk_stack *s, unsigned from, unsigned to,
                       hak_profile_stack *out)
{
    hk_mark_value a = hk_profile_value(k, s, from), b = hk_profile_value(k, s, to);
    *out = hk_profile_told(k, s);
    out->alloc_blocks = b.alloc_blocks - a.alloc_blocks;
    out->alloc_bytes = b.alloc_bytes - a.alloc_bytes;
    out->live_blocks = b.live_blocks - a.live_blocks;
    out->live_bytes = b.live_bytes - a.live_bytes;
    out->alloc_bytes_error = hk_root(b.alloc_var - a.alloc_var);
    out->live_bytes_error = hk_root(b.alloc_var - a.alloc_var + b.freed_var - a.freed_var);
    if (out->alloc_blocks > 0) out->mean_bytes = out->alloc_bytes / out->alloc_blocks;
    return b.alloc_bytes > a.alloc_bytes || b.live_blocks < a.live_blocks || b.live_bytes < a.live_bytes ||
           b.live_bytes > a.live_bytes;
}

int hak_profile_diff(const hak_ctx *ctx, unsigned from, unsigned to, hak_profile_fn *fn, void *user)
{
    hk_profile *k = hk_profile_of(ctx);
    if (!k || to <= from || to > windows_of(k) + 1) return -1;
    for (const hk_stack *s = hk_profile_oldest(k); s;) {
        hak_profile_stack stack;
        hk_profile_lock(k);
        bool changed = difference(k, s, from, to, &stack);
        s = hk_stack_younger(k, s);
        hk_profile_unlock(k);
        if (changed && !fn(user, &stack)) return 1;
    }
    return 0;
}

/* A sample is of the last window that began before its birth. */
static uint32_t window_of(const hk_profile *k, const hk_sample *b)
{
    const hk_mark *m = k->marks;
    while (m && m->born_ns >= b->birth_ns)
        m = m->before;
    return m ? m->number : 0;
}

int hak_profile_kept(const hak_ctx *ctx, hak_profile_kept_fn *fn, void *user)
{
    hk_profile *k = hk_profile_of(ctx);
    if (!k) return -1;
    bool goes_on = true;
    hk_profile_lock(k);
    for (size_t bucket = 0; bucket < k->samples.count && goes_on; bucket++)
        for (const hk_sample *b = k->samples.at[bucket]; b && goes_on; b = b->next) {
            double w = k->exact ? 1 : hk_profile_weight(k, b->eligible);
            goes_on = fn(user, b->stack->id, window_of(k, b), w * (double)b->size);
        }
    hk_profile_unlock(k);
    return goes_on ? 0 : 1;
}

int hak_profile_grown(const hak_ctx *ctx, hak_profile_growth_fn *fn, void *user)
{
    hk_profile *k = hk_profile_of(ctx);
    if (!k) return -1;
    for (const hk_stack *s = hk_profile_oldest(k); s;) {
        hak_profile_growth growth;
        hk_profile_lock(k);
        bool grew = hk_profile_growth(k, s, &growth);
        s = hk_stack_younger(k, s);
        hk_profile_unlock(k);
        if (grew && !fn(user, &growth)) return 1;
    }
    return 0;
}

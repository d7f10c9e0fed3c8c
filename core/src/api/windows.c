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
    hk_profile_unlock(k);
    uint32_t n = m ? m->number : 0;
    for (; m; m = m->before) {
        if (m->number > count) continue;
        out[m->number - 1] = (hak_profile_window){
            sizeof *out, m->name, m->at_ns, m->live_bytes, m->committed_bytes, m->resident_bytes};
    }
    return (int)n;
}

/* false = nothing was allocated or freed. */
static bool difference(const hk_profile *k, const hk_stack *s, unsigned from, unsigned to,
                       hak_profile_stack *out)
{
    hk_mark_value a = hk_profile_value(k, s, from), b = hk_profile_value(k, s, to);
    *out = hk_profile_told(s);
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
        s = s->younger;
        hk_profile_unlock(k);
        if (changed && !fn(user, &stack)) return 1;
    }
    return 0;
}

int hak_profile_grown(const hak_ctx *ctx, hak_profile_growth_fn *fn, void *user)
{
    hk_profile *k = hk_profile_of(ctx);
    if (!k) return -1;
    for (const hk_stack *s = hk_profile_oldest(k); s;) {
        hak_profile_growth growth;
        hk_profile_lock(k);
        bool grew = hk_profile_growth(k, s, &growth);
        s = s->younger;
        hk_profile_unlock(k);
        if (grew && !fn(user, &growth)) return 1;
    }
    return 0;
}

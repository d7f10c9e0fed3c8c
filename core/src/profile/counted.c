/* Profiles that the host counts: each stack contains a record of the host, and gets its sums from that record
 * when somebody looks. */
#include "profile/profile.h"

#include "heap/label.h"

hak_profile_counts *hk_profile_counts_of(hk_profile *k, const uintptr_t *frames, unsigned depth,
                                         hak_label label)
{
    const uintptr_t none = 0;
    if (!frames) frames = &none, depth = 0;
    hk_profile_prepare(k);
    size_t before = k->stack_count;
    hk_stack *s =
        hk_profile_stack_of(k, frames, (unsigned)hk_min(depth, k->depth), 0, hk_label_known(k->ctx, label));
    if (!s) {
        k->dropped_stacks++;
        return NULL;
    }
    if (k->stack_count > before) {
        s->died.counts.id = s->id;
        s->died.counts.peak_seen = k->tally.peak_seen;
    }
    return &s->died.counts;
}

void hk_profile_fold(hk_profile *k)
{
    if (!k->counted) return;
    k->peak_seq = k->tally.peak_seen;
    k->drawn = 0;
    k->dropped_samples = (size_t)k->tally.missed;
    HK_EACH_STACK(k, s)
    {
        const hak_profile_counts *c = &s->died.counts;
        s->samples = c->alloc_blocks;
        s->live_samples = c->alloc_blocks - c->freed_blocks;
        s->alloc_blocks = (double)c->alloc_blocks;
        s->alloc_bytes = (double)c->alloc_bytes;
        s->live_blocks = (double)s->live_samples;
        s->live_bytes = (double)(c->alloc_bytes - c->freed_bytes);
        s->peak_seen = c->peak_seen;
        s->peak_blocks = (double)c->peak_blocks;
        s->peak_bytes = (double)c->peak_bytes;
        s->grown_blocks = (double)c->grown_blocks;
        s->grown_bytes = (double)c->grown_bytes;
        s->largest = (size_t)c->largest_bytes;
        k->drawn += c->alloc_blocks;
    }
}

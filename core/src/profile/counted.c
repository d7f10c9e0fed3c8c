/* Profiles that the host counts: each stack contains a record of the host, and gets its sums from that record
 * when somebody looks. */
#include "profile/profile.h"

#include "heap/label.h"

hak_profile_counts *hk_profile_counts_of(hk_profile *k, const uintptr_t *frames, unsigned depth,
                                         hak_label label)
{
    const uintptr_t none = 0;
    if (!frames) frames = &none, depth = 0;
    depth = (unsigned)hk_min(depth, k->depth);
    hk_profile_prepare(k, depth);
    hk_stack *s = hk_profile_stack_of(k, frames, depth, 0, hk_label_known(k->ctx, label));
    if (!s) k->dropped_stacks++;
    hk_profile_unlock(k);
    return s ? &((hk_tallied *)s)->counts : NULL;
}

void hk_profile_fold(hk_profile *k)
{
    if (!k->counted) return;
    k->peak_seq = k->tally.peak_seen;
    k->drawn = 0;
    k->dropped_samples = (size_t)k->tally.missed;
    HK_EACH_STACK(k, s)
    {
        k->drawn += ((const hk_tallied *)s)->counts.alloc_blocks;
    }
}

hk_sums hk_stack_sums(const hk_profile *k, const hk_stack *s)
{
    if (!k->counted) return ((const hk_sampled *)s)->sums;
    const hak_profile_counts *c = &((const hk_tallied *)s)->counts;
    const hk_mark_value now = hk_tallied_now(s);
    return (hk_sums){
        .alloc_blocks = now.alloc_blocks,
        .alloc_bytes = now.alloc_bytes,
        .live_blocks = now.live_blocks,
        .live_bytes = now.live_bytes,
        .peak_blocks = (double)c->peak_blocks,
        .peak_bytes = (double)c->peak_bytes,
        .grown_blocks = (double)c->grown_blocks,
        .grown_bytes = (double)c->grown_bytes,
        .samples = c->alloc_blocks,
        .live_samples = c->alloc_blocks - c->freed_blocks,
        .peak_seen = k->peak_seq - (uint32_t)((uint32_t)k->peak_seq - c->peak_seen),
        .largest = (size_t)c->largest_bytes,
    };
}

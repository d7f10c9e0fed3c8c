/* What an allocation does while a profile counts. */
#ifndef HK_API_PROFILE_H
#define HK_API_PROFILE_H

#include "profile/profile.h"

/* Brings the calling thread's heap in line with the profile: its magazines are shut while the profile runs
 * and open while it does not. */
void hk_profile_enter(hak_ctx *heap);

/* Takes a block of a batch, none of which is a sample. NULL = a sample is due, or there is no batch. Calls to
 * a shared context find here what is left of a batch, because the table of that context leads past
 * batches. */
void *hk_profile_batch(hak_ctx *heap, unsigned sc, hak_label label);

/* The first stack of those that the lock guards: stacks are only added, so the caller goes on by `younger`.
 * What the host counts is in their sums. */
const hk_stack *hk_profile_oldest(hk_profile *k);
/* Which stack it is and how many samples it has, all else 0. */
hak_profile_stack hk_profile_told(const hk_stack *s);

/* p is a new block, or NULL. Counts its eligible bytes down to the next sample, which it may be. */
static inline void *hk_profile_new_block(hak_ctx *heap, void *p, size_t eligible, hak_label label,
                                         hak_site site)
{
    if (!(heap->checked & HK_PROFILED) || !p) return p;
    heap->sampling.left -= (int64_t)eligible;
    if (heap->sampling.left < 0) hk_profile_add(heap, p, 0, eligible, label, site);
    return p;
}

#endif

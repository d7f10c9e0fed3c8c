/* The profile of a context, for the paths of calls and for the writers of files. */
#ifndef HK_API_PROFILE_H
#define HK_API_PROFILE_H

#include "profile/profile.h"

/* Brings the calling thread's heap in line with the profile: its magazines are shut while the profile runs
 * and open while it does not. */
void hk_profile_enter(hak_ctx *heap);

/* The first stack of those that the lock guards: stacks are only added, so the caller goes on by hk_stack_younger(). */
const hk_stack *hk_profile_oldest(hk_profile *k);
/* Which stack it is and how many samples it has, all else 0. */
hak_profile_stack hk_profile_told(const hk_profile *k, const hk_stack *s);

#endif

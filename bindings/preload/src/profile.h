/* The profile of the process: native stacks, from the first allocation on. */
#ifndef HKS_PRELOAD_PROFILE_H
#define HKS_PRELOAD_PROFILE_H

#include <hakmem/profile.h>

#include <stdbool.h>

/* A hak_frames_fn: the stack of the caller of malloc or free. */
size_t hks_profile_frames(void *user, hak_ctx *ctx, hak_site site, uintptr_t *frames, size_t room);
/* If the settings ask for one. */
void hks_profile_begin(hak_ctx *ctx);
/* At the start: what is told is what will be missing at the end. */
void hks_profile_try(void);
/* From now on a signal asks for a profile, and a socket gives one, if the settings say so. A thread is made.
 */
void hks_profile_listen(void);
/* In a forked child; true = hks_profile_listen is due when a thread may be made. */
bool hks_profile_in_child(void);
/* The last one, into the file of the settings; of a forked child only where the name has %p, or else its
 * parent's would be lost. What fails is told in a line. */
void hks_profile_end(void);

#endif

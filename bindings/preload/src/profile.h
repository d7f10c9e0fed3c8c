/* The profile of the process: native stacks, from the first allocation on. */
#ifndef HKS_PRELOAD_PROFILE_H
#define HKS_PRELOAD_PROFILE_H

#include <hakmem/hakmem.h>

#include <stdbool.h>

/* If the settings ask for one. */
void hks_profile_begin(hak_ctx *ctx);
/* From now on a signal asks for a profile, and a socket gives one, if the settings say so. A thread is made.
 */
void hks_profile_listen(void);
/* In a forked child; true = hks_profile_listen is due when a thread may be made. */
bool hks_profile_in_child(void);
/* The last one, into the file of the settings. What fails is told in a line. */
void hks_profile_end(void);

#endif

/* The profile of the process: native stacks, from the first allocation on. */
#ifndef HKS_PRELOAD_PROFILE_H
#define HKS_PRELOAD_PROFILE_H

#include <hakmem/hakmem.h>

/* If the settings ask for one. */
void hks_profile_begin(hak_ctx *ctx);
/* Now, if there is one: into the file of the settings, or beside it, with this behind its name. What fails is
 * told in a line. One thread at a time. */
void hks_profile_write(const char *suffix);

#endif

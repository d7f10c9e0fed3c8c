/* The stack of an allocation. */
#ifndef HKP_PROFILE_STACK_H
#define HKP_PROFILE_STACK_H

#include "base/core.h"

enum { HKP_PROFILE_DEPTH = 100 };

/* Stands for frames that did not fit. */
#define HKP_STACK_MORE ((uintptr_t)3 << 60)

/* Lines (HKP_SITE_FRAME) and return addresses, the innermost first, then the task of asyncio if it has a name
 * (task.h), and last who asked (asker.h); of Python functions at most `depth`. room: 4 at least. Returns how
 * many. */
size_t hkp_profile_stack(hak_site site, unsigned depth, uintptr_t *frames, size_t room);

#endif

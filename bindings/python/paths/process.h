/* The process's malloc, for the library that stands before libc's. */
#ifndef HKP_PATHS_PROCESS_H
#define HKP_PATHS_PROCESS_H

#include "base/core.h"

/* What serves it: the hooks in use. Blocks from before there are any have no label and no line. */
HKP_API extern const hkp_process_allocator *hkp_process_now;
void hkp_process_use(const hkp_hooks *hooks);

#endif

/* What macOS and Windows have in common of common/smaps.h, and what each adds. */
#ifndef HKC_OWN_H
#define HKC_OWN_H

#include <stdbool.h>
#include <sys/types.h>

/* Whether the number is that of the calling process, or 0. */
bool hkc_is_own(pid_t pid);
/* The arguments of the calling process as the C library has them; NULL = it has none. */
char **hkc_own_arguments(int *count);

#endif

/* What mallctl tells and does, of the names that programs have been seen to use. Numbers are errno's. */
#ifndef HKS_PRELOAD_MALLCTL_H
#define HKS_PRELOAD_MALLCTL_H

#include <stddef.h>

/* Parts of a name, between its points. */
enum { HKS_MALLCTL_PARTS = 6 };

/* A name as numbers: the first one says which it is, that of an arena stands in its place and may be
 * exchanged. *parts: the room, then how many there are. ENOENT = no such name. */
int hks_mallctl_find(const char *name, size_t *mib, size_t *parts);
/* As mallctlbymib. EINVAL = *old_size or new_size is that of another type; EPERM = it cannot be set. */
int hks_mallctl(const size_t *mib, size_t parts, void *old, size_t *old_size, const void *new,
                size_t new_size);
/* The bytes that a new block of n may use; 0 = n is absurd. */
size_t hks_mallctl_good_size(size_t n);

#endif

/* Adds further extents to a space when its first one is full. Callers hold the lock of the space. */
#ifndef HK_EXTENTS_H
#define HK_EXTENTS_H

#include "space/extent.h"

/* Reserves address space for an extent, halving the wish until it is granted; *size is what was granted. What
 * was not granted whole leaves as much to others: to stacks of threads, libraries, and blocks with mappings of
 * their own. NULL = none. */
char *hk_extent_reserve(hak_space *s, size_t *size);
/* Reserves another extent and lists it. NULL = no more address space, or the space may not have one. */
hk_extent *hk_extent_add(hak_space *s);

#endif

/* Gives memory back to the OS: decides how many free units stay resident, for how long, and which go first.
 * Callers hold the lock of the space. */
#ifndef HK_PURGE_H
#define HK_PURGE_H

#include "space/space.h"

/* Purges n bytes at p, of which `purged_before` were counted as purged already, or never were resident. */
void hk_purge(hak_space *s, void *p, size_t n, size_t purged_before);
/* Does the same for a part of what its owner keeps. The part stays in its mapping, because there may be any
 * number of parts. */
void hk_purge_part(hak_space *s, void *p, size_t n);
/* Purges retained units of n bytes, or what there is. */
void hk_purge_bytes(hak_space *s, size_t n);
/* Purges a batch of n retained units, so that others need not wait long for the lock. Only the last batch
 * splits a chunk that is retained as a whole. Returns how many of the n are left. */
size_t hk_purge_batch(hak_space *s, size_t n);
/* Units above the limit of retained bytes. */
size_t hk_purge_due(const hak_space *s);
/* Purges n units, and some more, so that the next units need no purge of their own. */
void hk_purge_to_limit(hak_space *s);
/* Gives back all that is retained, so that n bytes that were refused can be mapped. Returns false if that
 * would not help. */
bool hk_purge_for(hak_space *s, size_t n);

#endif

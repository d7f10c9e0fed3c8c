/* Memory that goes back to the OS: how many free units stay resident, for how long, and which go first. All
 * of it is under the lock of the space. */
#ifndef HK_PURGE_H
#define HK_PURGE_H

#include "space/space.h"

/* Gives n bytes at p back, of which `counted` were counted as given back before, or never were resident. */
void hk_idle_decommit(hak_space *s, void *p, size_t n, size_t counted);
/* Idle units of n bytes, or what there is. */
void hk_idle_shrink(hak_space *s, size_t n);
/* A batch of n idle units, so that others need not wait long for the lock. Only the last one splits a chunk
 * that is idle as a whole. Returns how many of the n are left. */
size_t hk_idle_batch(hak_space *s, size_t n);
/* Units above the limit of idle bytes. */
size_t hk_idle_excess(const hak_space *s);
/* Gives them back, and as many more that the next ones do not call for it again. */
void hk_idle_keep(hak_space *s);

#endif

/* Counted calls of the OS table, for whoever holds the lock of the space. */
#ifndef HK_CALLS_H
#define HK_CALLS_H

#include "space/space.h"

void *hk_call_reserve(hak_space *s, size_t n, size_t align);
void hk_call_release(hak_space *s, void *p, size_t n);
/* Makes whole pages around these n bytes usable, which were reserved. 0 = ok. */
int hk_call_open(hak_space *s, void *p, size_t n);
/* Makes them usable after they were decommitted: no call where they are so all the time. */
int hk_call_commit(hak_space *s, void *p, size_t n);
void hk_call_huge(hak_space *s, void *p, size_t n);
/* Whether the pages may be touched; 0 = ok. The table has protect. */
int hk_call_protect(hak_space *s, void *p, size_t n, bool access);

#endif

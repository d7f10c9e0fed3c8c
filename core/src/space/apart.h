/* Pages of a space that lie apart from its units. No context is charged for them, and only reserved_bytes counts
 * them. */
#ifndef HK_APART_H
#define HK_APART_H

#include "space/space.h"

/* Returns n bytes, at most HK_CHUNK, at a multiple of 64; NULL = no memory. The space is no buffer of its host. No lock
 * may be held. */
void *hk_apart_take(hak_space *s, size_t n);
/* Gives back what hk_apart_take() returned. NULL is fine. */
void hk_apart_give(hak_space *s, void *p);
/* Returns the bytes of such pages from one address to another. No lock may be held. */
size_t hk_apart_bytes_within(hak_space *s, uintptr_t from, uintptr_t to);
/* Gives back all that is left; the space is about to go. */
void hk_apart_end(hak_space *s);

#endif

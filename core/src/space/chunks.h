/* Takes units from chunks, in an order, and takes them back. Callers hold the lock of the space; contexts use
 * the functions in space.h, which take the lock. */
#ifndef HK_CHUNKS_H
#define HK_CHUNKS_H

#include "space/space.h"

/* Makes the extent's chunk c usable, of which nobody had a unit yet. 0 = ok. */
int hk_chunk_open(hak_space *s, hk_extent *e, size_t c, size_t committed);
/* Takes n units in a row of chunk c, known to be free. 0 = they could not be committed. */
hk_unit_id hk_chunk_claim(hak_space *s, hk_extent *e, size_t c, unsigned bit, unsigned n, uint32_t entry,
                          bool *zero);
/* Gives units back to their chunks. holes: bytes of them that are not resident; if there are any, all pages
 * go to the OS. */
void hk_chunks_give(hak_space *s, hk_extent *e, size_t unit, size_t units, size_t holes);

#endif

/* Makes parts of an extent writable, and closes them again, chunk by chunk. Callers hold the lock of the
 * space.
 *
 * A space whose pages are the system's own (hk_os_own) reserves nothing: its extents *grow*. Such an extent
 * has 64 GiB of addresses where nobody else maps anything, and maps only what is open. Other extents are
 * reserved without access, and opened in the same steps. Extents of a host's table with commit, and of
 * hak_os_counted, get each unit committed when it is used, so this module does not concern their units. */
#ifndef HK_OPEN_H
#define HK_OPEN_H

#include "space/extent.h"

/* Returns 0 if the part is open, -1 if there is no memory for it, 1 if somebody else has the addresses. */
int hk_open_records(hak_space *s, hk_extent *e, size_t chunk);
int hk_open_units(hak_space *s, hk_extent *e, size_t chunk);
int hk_open_labels(hak_space *s, hk_extent *e, unsigned area, size_t chunk);

/* Counts one more hole, and returns whether memory that goes back may split a mapping once more. Counts the
 * holes anew if there may be too many. */
bool hk_may_split(hak_space *s);
/* Gives the pages of n chunks back, which have neither live nor retained units, so that no limit counts them.
 * false = they stay open, because this table cannot do without or because there are many holes already. */
bool hk_close_chunks(hak_space *s, hk_extent *e, size_t chunk, size_t n);

/* Fills in an extent that grows, with its first records open. `first`: of the space. false = no memory, or no
 * place. */
bool hk_extent_place(hak_space *s, hk_extent *e, bool first, hk_layout *l);
/* Opens the records of further extents, in the first one, which grows. false = no memory. */
bool hk_open_more(hak_space *s);
/* Gives back all that such an extent has mapped. more: those records, NULL = they are not open. */
void hk_extent_unmap(hk_extent *e, void *more);

#endif

/* What the core asks of the operating system: pages, and what locks wait by. Only the files os_*.c call the
 * system, one for each; everything above goes through a hak_os. docs/internals/porting.md says what a further
 * system has to do. */
#ifndef HK_OS_H
#define HK_OS_H

#include "base/base.h"

/* Copies a host's table of any version, or that of the operating system if `from` is NULL. Returns what is
 * wrong with it; NULL = nothing. */
const char *hk_os_read(hak_os *to, const hak_os *from);
/* Whether pages of the table stay usable after decommit, once they were committed: it has the commit of
 * hak_os_init. */
bool hk_os_opens(const hak_os *os);
/* Whether all of its functions for pages are those of hak_os_init, so that the functions below may take their
 * places. */
bool hk_os_own(const hak_os *os);
/* Whether its decommit is that of hak_os_counted: what went back is a mapping of its own. */
bool hk_os_counts(const hak_os *os);
/* Gives pages back which stay usable, and in their mapping. */
void hk_os_discard(void *p, size_t n);
/* Address space that an extent takes, or grows to. Where each page that may be written to counts, the map of
 * an extent counts as a whole: 1 MiB then. */
size_t hk_os_reserve(const hak_os *os);
/* The system's pages, which may be larger than HK_PAGE. */
size_t hk_os_page(void);
/* Usable pages, to be given back by release. NULL = no memory, or more than the machine can have. */
void *hk_os_map(size_t n, size_t align, uintptr_t below);
/* Draws where n bytes may lie, of which little is mapped at first: below 2^47, at a multiple of HK_CHUNK,
 * where the system maps nothing of its own accord. */
uintptr_t hk_os_draw(unsigned attempt, size_t n);
/* Maps usable pages at exactly these addresses. 0 = ok, -1 = no memory, 1 = something else is there. */
int hk_os_map_at(uintptr_t at, size_t n);
/* Gives pages back so that nothing counts them any more. keep: their addresses stay reserved. false = there
 * would be too many mappings. Keeps errno. */
bool hk_os_close(void *p, size_t n, bool keep);
/* Pages for an object of n bytes that lies apart from contexts: committed, zeros, and HK_BESIDE around it,
 * for blocks may be in the pages beside these. NULL = no memory. To be given back with the same n. */
void *hk_os_take(const hak_os *os, size_t n);
void hk_os_give(const hak_os *os, void *p, size_t n);

/* Lets another thread that is ready run first. */
void hk_os_yield(void);
/* Sleeps for so many nanoseconds, less than a second, or as little longer as the system can. Keeps errno or
 * not. No point of cancellation where the system allows that. */
void hk_os_sleep(unsigned ns);

/* abort(), for HAK_DEBUG_ABORT. */
_Noreturn void hk_os_abort(void);

#endif

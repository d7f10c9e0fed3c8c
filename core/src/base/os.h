/* Pages of the operating system. Only this layer calls it; everything above goes through a hak_os. */
#ifndef HK_OS_H
#define HK_OS_H

#include "base/base.h"

/* Copies a host's table of any version, or that of the operating system if `from` is NULL. Returns what is
 * wrong with it; NULL = nothing. */
const char *hk_os_read(hak_os *to, const hak_os *from);
/* The table refused to reserve n bytes. Whether that is because the kernel counts them as if they were used,
 * though it grants the addresses: the table then reserves these, and commits pages as they are used. */
bool hk_os_counts(hak_os *os, size_t n, uintptr_t below);
/* What a space reserves first. Where the kernel counts pages, the map of an extent counts as a whole: 1 MiB
 * then. */
size_t hk_os_reserve(const hak_os *os);
/* Pages for an object of n bytes that lies apart from contexts: committed, zeros, and HK_BESIDE around it,
 * for blocks may be in the pages beside these. NULL = no memory. To be given back with the same n. */
void *hk_os_take(const hak_os *os, size_t n);
void hk_os_give(const hak_os *os, void *p, size_t n);

/* abort(), for HAK_DEBUG_ABORT. */
_Noreturn void hk_os_abort(void);

#endif

/* Addresses of code as module and offset, which addr2line takes. */
#ifndef HKS_PRELOAD_PLACES_H
#define HKS_PRELOAD_PLACES_H

#include <stddef.h>
#include <stdint.h>

/* A line for each of the addresses in a module, whole lines, at most `room` bytes with the terminating 0;
 * returns the number without it. Takes no lock and allocates nothing: a signal handler may call it, and
 * malloc. 0 where libc cannot tell without a lock (before glibc 2.35). */
size_t hks_places_text(const uintptr_t *addresses, size_t n, char *out, size_t room);

#endif

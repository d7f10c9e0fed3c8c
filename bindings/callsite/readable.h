/* Whether memory can be read: for data that may be broken, and lead anywhere. */
#ifndef HKC_READABLE_H
#define HKC_READABLE_H

#include <stdbool.h>
#include <stddef.h>

/* n bytes from p on. A call of the OS for each page; without a lock, safe in signal handlers, keeps errno. */
bool hkc_readable(const void *p, size_t n);

#endif

/* Pages of the operating system for who serves malloc: free() keeps errno. */
#ifndef HKC_OS_H
#define HKC_OS_H

#include <hakmem/hakmem.h>

/* hak_os_default, or hak_os_counted where the kernel is such; what a free may call keeps errno. `size` of
 * `os` is set. */
void hkc_os(hak_os *os);

#endif

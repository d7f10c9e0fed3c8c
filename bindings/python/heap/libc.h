/* libc's own, where hakmem's functions of these names stand before them. Found by the first call. */
#ifndef HKP_LIBC_H
#define HKP_LIBC_H

#include <stddef.h>

void hkp_libc_free(void *p);
void *hkp_libc_realloc(void *p, size_t n);
size_t hkp_libc_usable_size(void *p);

#endif

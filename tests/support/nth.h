/* Which requests for pages fail: nth.c. */
#ifndef HAK_TEST_NTH_H
#define HAK_TEST_NTH_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The n-th from now on, and each `every`-th after it: 0 = none of them, 1 = all. n = 0: nothing fails. */
void nth_fail(uint64_t n, uint64_t every);
/* How many did since then. */
uint64_t nth_failed(void);
/* Bytes of address space that this process has of mmap and mremap, and did not give back. A mapping in place
 * of another one, by MAP_FIXED or MREMAP_FIXED, changes nothing. */
int64_t nth_mapped(void);

#ifdef __cplusplus
}
#endif

#endif

/* What the tests' fake OS takes of POSIX, on Windows: mman.c. Reservations are made in steps of 64 KiB, and
 * go back when all of their parts were unmapped. */
#ifndef TEST_MMAN_H
#define TEST_MMAN_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
    PROT_NONE = 0,
    PROT_READ = 1,
    PROT_WRITE = 2,
    MAP_PRIVATE = 2,
    MAP_ANONYMOUS = 0x20,
    MAP_NORESERVE = 0x4000,
    MAP_FIXED_NOREPLACE = 0x100000,
    MADV_DONTNEED = 4,
    MADV_NOHUGEPAGE = 15
};
#define MAP_FAILED ((void *)-1)

void *mmap(void *at, size_t n, int protection, int flags, int file, long offset);
int munmap(void *p, size_t n);
int mprotect(void *p, size_t n, int protection);
int madvise(void *p, size_t n, int advice);
/* Pages that are committed count as resident. */
int mincore(void *p, size_t n, unsigned char *resident);

#ifdef __cplusplus
}
#endif

#endif

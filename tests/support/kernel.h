/* Included before base/os_linux.c, or os_darwin.c, in a build of the core for machines that the tests do not run on: kernels with
 * larger pages (KERNEL_PAGE=16384, 65536), and ones without MADV_POPULATE_WRITE, huge pages and mremap
 * (KERNEL_PLAIN=1), ones that promise no more than KERNEL_COMMIT bytes in all (vm.overcommit_memory=2), and
 * ones with no more than KERNEL_SPACE bytes of addresses (RLIMIT_AS). The calls behave as there: lengths are
 * rounded up, addresses within a page refused. */
#ifndef HK_TEST_KERNEL_H
#define HK_TEST_KERNEL_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <stddef.h>
#include <sys/mman.h>
#include <unistd.h>

void *kernel_mmap(void *hint, size_t n, int protection, int flags, int file, long offset);
int kernel_munmap(void *p, size_t n);
int kernel_mprotect(void *p, size_t n, int protection);
int kernel_madvise(void *p, size_t n, int advice);
void *kernel_mremap(void *p, size_t old_n, size_t n, int flags, ...);
int kernel_getpagesize(void);

#ifndef HK_TEST_KERNEL
#define mmap kernel_mmap
#define munmap kernel_munmap
#define mprotect kernel_mprotect
#define madvise kernel_madvise
#define mremap kernel_mremap
#define getpagesize kernel_getpagesize
#endif

#endif

/* The calls of libc that map memory, for a library that stands before libc (common/mapped.h). Who includes this has
 * them exported. They are never part of another function: their return address tells who called. */
#ifndef HKC_MAPPED_CALLS_H
#define HKC_MAPPED_CALLS_H

#include "common/mapped.h"

#include <errno.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define HKC_MAPPED_CALL __attribute__((visibility("default"), noinline, noclone, used))
#define HKC_MAPPED_CALLER ((uintptr_t)__builtin_return_address(0))

/* Most processes count nothing, and need not read the code that does. */
#define HKC_MAPPED_COUNTS atomic_load_explicit(&hkc_mapped_counts, memory_order_relaxed)

extern void *__sbrk(intptr_t more) __attribute__((weak)); /* glibc's own; other libcs refuse */

HKC_MAPPED_CALL void *mmap(void *at, size_t n, int prot, int flags, int fd, off_t offset)
{
    if (!HKC_MAPPED_COUNTS) return (void *)syscall(SYS_mmap, at, n, prot, flags, fd, offset);
    return hkc_mapped_mmap(at, n, prot, flags, fd, offset, HKC_MAPPED_CALLER);
}

#ifndef mmap64 /* musl has one function for both */
HKC_MAPPED_CALL void *mmap64(void *at, size_t n, int prot, int flags, int fd, off64_t offset)
{
    if (!HKC_MAPPED_COUNTS) return (void *)syscall(SYS_mmap, at, n, prot, flags, fd, offset);
    return hkc_mapped_mmap(at, n, prot, flags, fd, offset, HKC_MAPPED_CALLER);
}
#endif

/* Allocators take this where mmap is refused. */
HKC_MAPPED_CALL void *sbrk(intptr_t more)
{
    if (!__sbrk) {
        errno = ENOMEM;
        return (void *)-1;
    }
    if (!HKC_MAPPED_COUNTS) return __sbrk(more);
    return hkc_mapped_sbrk(more, HKC_MAPPED_CALLER);
}

HKC_MAPPED_CALL int munmap(void *at, size_t n)
{
    if (!HKC_MAPPED_COUNTS) return (int)syscall(SYS_munmap, at, n);
    return hkc_mapped_munmap(at, n, HKC_MAPPED_CALLER);
}

HKC_MAPPED_CALL int mprotect(void *at, size_t n, int prot)
{
    if (!HKC_MAPPED_COUNTS) return (int)syscall(SYS_mprotect, at, n, prot);
    return hkc_mapped_mprotect(at, n, prot, HKC_MAPPED_CALLER);
}

/* The fifth argument is there with MREMAP_FIXED and MREMAP_DONTUNMAP alone. */
HKC_MAPPED_CALL void *mremap(void *at, size_t n, size_t now, int flags, ...)
{
    va_list more;
    va_start(more, flags);
    void *to = (flags & ~MREMAP_MAYMOVE) != 0 ? va_arg(more, void *) : NULL;
    va_end(more);
    if (!HKC_MAPPED_COUNTS) return (void *)syscall(SYS_mremap, at, n, now, flags, to);
    return hkc_mapped_mremap(at, n, now, flags, to, HKC_MAPPED_CALLER);
}

#endif

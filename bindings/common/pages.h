/* Pages of the system for tables: malloc may be served by the context that a report is about, and its lock may
 * be held where a report is written. */
#ifndef HKC_PAGES_H
#define HKC_PAGES_H

#include <stddef.h>

#ifdef _WIN32

/* windows.h has names of its own, and this header is included everywhere. */
__declspec(dllimport) void *__stdcall VirtualAlloc(void *at, size_t n, unsigned long kind,
                                                   unsigned long access);
__declspec(dllimport) int __stdcall VirtualFree(void *p, size_t n, unsigned long kind);

/* Returns n zero-filled bytes; NULL = no memory. */
static inline void *hkc_pages(size_t n)
{
    enum { RESERVE_AND_COMMIT = 0x3000, READ_AND_WRITE = 4 };
    return VirtualAlloc(NULL, n, RESERVE_AND_COMMIT, READ_AND_WRITE);
}

/* Gives back all of what hkc_pages(n) returned. NULL is fine. */
static inline void hkc_pages_give(void *p, size_t n)
{
    enum { RELEASE = 0x8000 };
    (void)n;
    if (p) VirtualFree(p, 0, RELEASE);
}

#else

#include <sys/mman.h>

/* Returns n zero-filled bytes; NULL = no memory. */
static inline void *hkc_pages(size_t n)
{
    void *p = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return p == MAP_FAILED ? NULL : p;
}

/* Gives back all of what hkc_pages(n) returned. NULL is fine. */
static inline void hkc_pages_give(void *p, size_t n)
{
    if (p) munmap(p, n);
}

#endif
#endif

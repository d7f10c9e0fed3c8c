/* Requests for pages that fail, of whatever a process has loaded: the functions of libc that map memory,
 * before libc's. Linked to a program, nth_fail() says which; preloaded, the environment does: NTH=n the n-th
 * request of a process fails NTH=n+       all from the n-th on NTH=n/k      the n-th, and each k-th after it
 *   NTH_BEGIN=word it counts from when a name with this word in it is opened; without, from the start
 *   NTH_LOG=file gets a byte for each process, and one more for each request that failed
 *   NTH_OPEN=word names with this word in them cannot be opened
 * Files that the dynamic linker maps and what libc maps for itself do not come by here. */
#define _GNU_SOURCE
#include "nth.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static _Atomic uint64_t requests, failed;
static _Atomic int64_t mapped;
static uint64_t first, each; /* each: 0 = the first alone */
static char log_name[4096], forbidden[64], beginning[64];
static uint64_t waiting[2]; /* first and each, until NTH_BEGIN */

void nth_fail(uint64_t n, uint64_t every)
{
    first = 0;
    requests = failed = 0;
    each = every;
    first = n;
}

uint64_t nth_failed(void)
{
    return failed;
}

int64_t nth_mapped(void)
{
    return mapped;
}

/* Takes six arguments, as the kernel does, also where the caller gave fewer: the rest is what lies there, on the stack,
 * too, which AddressSanitizer would call a fault. */
#define MORE_THAN_GIVEN __attribute__((no_sanitize("address")))

/* What libc's syscall() does, which this file stands before, too: the shim and the Python hook have their own
 * functions that map memory, and ask the kernel by it. */
static MORE_THAN_GIVEN long ask_kernel(long number, ...)
{
    va_list rest;
    va_start(rest, number);
    long a[6];
    for (int i = 0; i < 6; i++)
        a[i] = va_arg(rest, long);
    va_end(rest);
#ifdef __x86_64__
    register long r10 __asm__("r10") = a[3], r8 __asm__("r8") = a[4], r9 __asm__("r9") = a[5];
    long result;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a[0]), "S"(a[1]), "d"(a[2]), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
#else
    register long x8 __asm__("x8") = number, x0 __asm__("x0") = a[0], x1 __asm__("x1") = a[1],
                     x2 __asm__("x2") = a[2], x3 __asm__("x3") = a[3], x4 __asm__("x4") = a[4],
                     x5 __asm__("x5") = a[5];
    __asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5) : "memory");
    long result = x0;
#endif
    if (result >= 0 || result < -4095) return result;
    errno = (int)-result;
    return -1;
}

static void note(void)
{
    int error = errno;
    int fd = (int)ask_kernel(SYS_openat, AT_FDCWD, log_name, O_WRONLY | O_APPEND | O_CREAT, 0600);
    if (fd >= 0) {
        ask_kernel(SYS_write, fd, "x", 1);
        ask_kernel(SYS_close, fd);
    }
    errno = error;
}

static const char *value_of(const char *block, size_t size, const char *name)
{
    for (const char *at = block; at < block + size; at += strlen(at) + 1)
        if (strncmp(at, name, strlen(name)) == 0) return at + strlen(name);
    return NULL;
}

/* The first calls come before libc has an environment. */
static void begin(void)
{
    static char block[1 << 16];
    static atomic_flag begun = ATOMIC_FLAG_INIT;
    if (atomic_flag_test_and_set(&begun)) return;
    int fd = (int)ask_kernel(SYS_openat, AT_FDCWD, "/proc/self/environ", O_RDONLY, 0);
    size_t size = 0;
    long got;
    while (fd >= 0 && size < sizeof block - 1 &&
           (got = ask_kernel(SYS_read, fd, block + size, sizeof block - 1 - size)) > 0)
        size += (size_t)got;
    if (fd >= 0) ask_kernel(SYS_close, fd);
    const char *nth = value_of(block, size, "NTH="), *name = value_of(block, size, "NTH_LOG="),
               *word = value_of(block, size, "NTH_OPEN="), *start = value_of(block, size, "NTH_BEGIN=");
    if (word) strncpy(forbidden, word, sizeof forbidden - 1);
    if (start) strncpy(beginning, start, sizeof beginning - 1);
    if (name) strncpy(log_name, name, sizeof log_name - 1);
    if (!nth) return;
    note();
    char *end;
    waiting[0] = strtoull(nth, &end, 10);
    waiting[1] = *end == '+' ? 1 : *end == '/' ? strtoull(end + 1, NULL, 10) : 0;
    if (!beginning[0]) nth_fail(waiting[0], waiting[1]);
}

static bool fails(void)
{
    begin();
    uint64_t n = ++requests;
    if (!first || n < first || (each ? (n - first) % each : n - first)) return false;
    failed++;
    if (log_name[0]) note();
    errno = ENOMEM;
    return true;
}

void *mmap(void *p, size_t n, int prot, int flags, int fd, off_t offset)
{
    if (fails()) return MAP_FAILED;
    void *q = (void *)ask_kernel(SYS_mmap, p, n, prot, flags, fd, offset);
    if (q != MAP_FAILED && !(flags & MAP_FIXED)) mapped += (int64_t)n;
    return q;
}
void *mmap64(void *, size_t, int, int, int, off_t) __attribute__((alias("mmap")));

int munmap(void *p, size_t n)
{
    const int rc = (int)ask_kernel(SYS_munmap, p, n);
    if (rc == 0) mapped -= (int64_t)n;
    return rc;
}

/* To take memory away, or to give its pages up, never fails in practice. */
int mprotect(void *p, size_t n, int prot)
{
    if (prot != PROT_NONE && fails()) return -1;
    return (int)ask_kernel(SYS_mprotect, p, n, prot);
}

void *mremap(void *p, size_t old_n, size_t n, int flags, ...)
{
    va_list rest;
    va_start(rest, flags);
    void *to = flags & MREMAP_FIXED ? va_arg(rest, void *) : NULL;
    va_end(rest);
    if (n > old_n && fails()) return MAP_FAILED;
    void *q = (void *)ask_kernel(SYS_mremap, p, old_n, n, flags, to);
    if (q != MAP_FAILED) mapped += (flags & MREMAP_FIXED ? 0 : (int64_t)n) - (int64_t)old_n;
    return q;
}

MORE_THAN_GIVEN long syscall(long number, ...)
{
    va_list rest;
    va_start(rest, number);
    long a[6];
    for (int i = 0; i < 6; i++)
        a[i] = va_arg(rest, long);
    va_end(rest);
    const bool maps = number == SYS_mmap || (number == SYS_mprotect && a[2] != PROT_NONE) ||
                      (number == SYS_mremap && a[2] > a[1]);
    if (maps && fails()) return -1;
    return ask_kernel(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

static bool is_forbidden(const char *name)
{
    begin();
    if (beginning[0] && strstr(name, beginning)) nth_fail(waiting[0], waiting[1]);
    if (!forbidden[0] || !strstr(name, forbidden)) return false;
    if (log_name[0]) note();
    errno = EACCES;
    return true;
}

int open(const char *name, int flags, ...)
{
    va_list rest;
    va_start(rest, flags);
    int mode = flags & O_CREAT || (flags & O_TMPFILE) == O_TMPFILE ? va_arg(rest, int) : 0;
    va_end(rest);
    return is_forbidden(name) ? -1 : (int)ask_kernel(SYS_openat, AT_FDCWD, name, flags, mode);
}
int open64(const char *, int, ...) __attribute__((alias("open")));

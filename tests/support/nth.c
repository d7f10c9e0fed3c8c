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

static void note(void)
{
    int error = errno;
    int fd = (int)syscall(SYS_openat, AT_FDCWD, log_name, O_WRONLY | O_APPEND | O_CREAT, 0600);
    if (fd >= 0) {
        syscall(SYS_write, fd, "x", 1);
        syscall(SYS_close, fd);
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
    int fd = (int)syscall(SYS_openat, AT_FDCWD, "/proc/self/environ", O_RDONLY, 0);
    size_t size = 0;
    long got;
    while (fd >= 0 && size < sizeof block - 1 &&
           (got = syscall(SYS_read, fd, block + size, sizeof block - 1 - size)) > 0)
        size += (size_t)got;
    if (fd >= 0) syscall(SYS_close, fd);
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
    void *q = (void *)syscall(SYS_mmap, p, n, prot, flags, fd, offset);
    if (q != MAP_FAILED && !(flags & MAP_FIXED)) mapped += (int64_t)n;
    return q;
}
void *mmap64(void *, size_t, int, int, int, off_t) __attribute__((alias("mmap")));

int munmap(void *p, size_t n)
{
    const int rc = (int)syscall(SYS_munmap, p, n);
    if (rc == 0) mapped -= (int64_t)n;
    return rc;
}

/* To take memory away, or to give its pages up, never fails in practice. */
int mprotect(void *p, size_t n, int prot)
{
    if (prot != PROT_NONE && fails()) return -1;
    return (int)syscall(SYS_mprotect, p, n, prot);
}

void *mremap(void *p, size_t old_n, size_t n, int flags, ...)
{
    va_list rest;
    va_start(rest, flags);
    void *to = flags & MREMAP_FIXED ? va_arg(rest, void *) : NULL;
    va_end(rest);
    if (n > old_n && fails()) return MAP_FAILED;
    void *q = (void *)syscall(SYS_mremap, p, old_n, n, flags, to);
    if (q != MAP_FAILED) mapped += (flags & MREMAP_FIXED ? 0 : (int64_t)n) - (int64_t)old_n;
    return q;
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
    return is_forbidden(name) ? -1 : (int)syscall(SYS_openat, AT_FDCWD, name, flags, mode);
}
int open64(const char *, int, ...) __attribute__((alias("open")));

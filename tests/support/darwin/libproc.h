/* What core/src/base/os_darwin.c asks of macOS beside mmap and its kin, on Linux. */
#ifndef TEST_LIBPROC_H
#define TEST_LIBPROC_H

#include <errno.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { PROC_PIDTHREADID64INFO = 15 };
struct proc_threadinfo {
    char of_the_system[112];
};

static inline int pthread_threadid_np(const void *thread, uint64_t *id)
{
    (void)thread;
    *id = (uint64_t)syscall(SYS_gettid);
    return 0;
}

static inline int proc_pidinfo(int process, int what, uint64_t id, void *to, int size)
{
    (void)what, (void)to;
    if (syscall(SYS_tgkill, process, (pid_t)id, 0) == 0) return size;
    errno = ESRCH;
    return 0;
}

#endif

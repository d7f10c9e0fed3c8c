/* SIGPIPE and SIGXFSZ: that nobody reads what is written into a pipe, or that a file may not grow further
 * (ulimit -f), is no reason to end the program. */
#ifndef HKC_PIPE_H
#define HKC_PIPE_H

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

typedef struct hkc_pipe {
#ifndef _WIN32 /* where there are no such signals */
    sigset_t before;
#endif
    bool pipe_pending, file_pending; /* other ones, of before */
} hkc_pipe;

/* Around what this thread writes; error: errno of a write that failed, or 0. A signal that came with EPIPE or
 * EFBIG is taken back. Both keep errno, and may be called in signal handlers, and within each other. */
void hkc_pipe_begin(hkc_pipe *p);
void hkc_pipe_end(const hkc_pipe *p, int error);
/* write() between the two. */
ssize_t hkc_pipe_write(int fd, const void *bytes, size_t size);

/* Writes all of it. Returns 0, or errno. */
static inline int hkc_pipe_write_all(int fd, const void *bytes, size_t size)
{
    for (const char *at = (const char *)bytes; size > 0;) {
        const ssize_t n = hkc_pipe_write(fd, at, size);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return n == 0 ? EIO : errno;
        at += n;
        size -= (size_t)n;
    }
    return 0;
}

#endif

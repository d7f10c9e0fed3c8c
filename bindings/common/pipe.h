/* SIGPIPE: that nobody reads what is written into a pipe is no reason to end the program. */
#ifndef HKC_PIPE_H
#define HKC_PIPE_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

typedef struct hkc_pipe {
#ifndef _WIN32 /* where there is no such signal */
    sigset_t before;
#endif
    bool pending; /* another one, of before */
} hkc_pipe;

/* Around what this thread writes; broken: a write failed with EPIPE, and the signal is taken back. Both keep
 * errno, and may be called in signal handlers. */
void hkc_pipe_begin(hkc_pipe *p);
void hkc_pipe_end(const hkc_pipe *p, bool broken);
/* write() between the two. */
ssize_t hkc_pipe_write(int fd, const void *bytes, size_t size);

#endif

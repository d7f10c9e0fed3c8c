#include "common/pipe.h"

#include <errno.h>
#include <time.h>
#include <unistd.h>

static sigset_t only(int one, int other)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, one);
    sigaddset(&set, other);
    return set;
}

void hkc_pipe_begin(hkc_pipe *p)
{
    const int saved = errno;
    const sigset_t set = only(SIGPIPE, SIGXFSZ);
    const bool known = sigpending(&p->before) == 0;
    p->pipe_pending = known && sigismember(&p->before, SIGPIPE) == 1;
    p->file_pending = known && sigismember(&p->before, SIGXFSZ) == 1;
    pthread_sigmask(SIG_BLOCK, &set, &p->before);
    errno = saved;
}

/* A signal that was pending is the program's, and a second one leaves no trace beside it. */
void hkc_pipe_end(const hkc_pipe *p, int error)
{
    const int saved = errno, raised = error == EPIPE ? SIGPIPE : error == EFBIG ? SIGXFSZ : 0;
    const bool pending = raised == SIGPIPE ? p->pipe_pending : p->file_pending;
    if (raised && !pending) {
        const sigset_t one = only(raised, raised);
        const struct timespec at_once = {0, 0};
        while (sigtimedwait(&one, NULL, &at_once) < 0 && errno == EINTR) {
        }
    }
    sigset_t set;
    sigemptyset(&set);
    if (sigismember(&p->before, SIGPIPE) == 0) sigaddset(&set, SIGPIPE);
    if (sigismember(&p->before, SIGXFSZ) == 0) sigaddset(&set, SIGXFSZ);
    pthread_sigmask(SIG_UNBLOCK, &set, NULL);
    errno = saved;
}

ssize_t hkc_pipe_write(int fd, const void *bytes, size_t size)
{
    hkc_pipe p;
    hkc_pipe_begin(&p);
    const ssize_t n = write(fd, bytes, size);
    hkc_pipe_end(&p, n < 0 ? errno : 0);
    return n;
}

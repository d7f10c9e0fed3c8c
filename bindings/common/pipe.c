#include "common/pipe.h"

#include <errno.h>
#include <time.h>
#include <unistd.h>

static sigset_t only_pipe(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGPIPE);
    return set;
}

void hkc_pipe_begin(hkc_pipe *p)
{
    const int saved = errno;
    const sigset_t set = only_pipe();
    p->pending = sigpending(&p->before) == 0 && sigismember(&p->before, SIGPIPE) == 1;
    pthread_sigmask(SIG_BLOCK, &set, &p->before);
    errno = saved;
}

/* A signal that was pending is the program's, and a second one leaves no trace beside it. */
void hkc_pipe_end(const hkc_pipe *p, bool broken)
{
    const int saved = errno;
    const sigset_t set = only_pipe();
    const struct timespec at_once = {0, 0};
    while (broken && !p->pending && sigtimedwait(&set, NULL, &at_once) < 0 && errno == EINTR) {
    }
    pthread_sigmask(SIG_SETMASK, &p->before, NULL);
    errno = saved;
}

ssize_t hkc_pipe_write(int fd, const void *bytes, size_t size)
{
    hkc_pipe p;
    hkc_pipe_begin(&p);
    const ssize_t n = write(fd, bytes, size);
    hkc_pipe_end(&p, n < 0 && errno == EPIPE);
    return n;
}

/* macOS has no sigtimedwait to take back a SIGPIPE, and sends it to the whole process, so that another thread may get
 * it. Therefore the open file is told to raise none while something is written to it, which holds for all who write there
 * in that time; and two of these at once may take it back too early for each other. SIGXFSZ stays as it is. */
#include "common/pipe.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

void hkc_pipe_begin(hkc_pipe *p)
{
    (void)p;
}

void hkc_pipe_end(const hkc_pipe *p, int error)
{
    (void)p, (void)error;
}

ssize_t hkc_pipe_write(int fd, const void *bytes, size_t size)
{
    const int before = fcntl(fd, F_GETNOSIGPIPE);
    if (before == 0) fcntl(fd, F_SETNOSIGPIPE, 1);
    const ssize_t n = write(fd, bytes, size);
    const int error = errno;
    if (before == 0) fcntl(fd, F_SETNOSIGPIPE, 0);
    errno = error;
    return n;
}

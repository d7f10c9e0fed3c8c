#include "stream.h"

#include <fcntl.h>
#include <stdbool.h>
#include <unistd.h>

enum { HIGH_FD = 200 };

void hks_stream_keep(hks_stream *s, int fd)
{
    s->fd = fd >= 0 ? fcntl(fd, F_DUPFD_CLOEXEC, HIGH_FD) : -1;
    if (s->fd >= 0 && fstat(s->fd, &s->is) == 0) return;
    if (s->fd >= 0) close(s->fd);
    s->fd = -1;
}

int hks_stream_now(const hks_stream *s)
{
    struct stat now;
    const bool same = fstat(s->fd, &now) == 0 && now.st_dev == s->is.st_dev && now.st_ino == s->is.st_ino;
    return same ? s->fd : -1;
}

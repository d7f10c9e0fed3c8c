#define _GNU_SOURCE
#include "common/stream.h"

#include <fcntl.h>
#include <stdbool.h>
#include <unistd.h>

enum { HIGH_FD = 200 };

void hkc_stream_note(hkc_stream *s, int fd)
{
    s->fd = fd >= 0 && fstat(fd, &s->is) == 0 ? fd : -1;
}

void hkc_stream_keep(hkc_stream *s, int fd)
{
    const int copy = fd >= 0 ? fcntl(fd, F_DUPFD_CLOEXEC, HIGH_FD) : -1;
    hkc_stream_note(s, copy);
    if (copy >= 0 && s->fd < 0) close(copy);
}

int hkc_stream_now(const hkc_stream *s)
{
    struct stat now;
    const bool same =
        s->fd >= 0 && fstat(s->fd, &now) == 0 && now.st_dev == s->is.st_dev && now.st_ino == s->is.st_ino;
    return same ? s->fd : -1;
}

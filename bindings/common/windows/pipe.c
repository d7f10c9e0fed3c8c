#include "common/pipe.h"

#include <io.h>
#include <limits.h>

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
    return _write(fd, bytes, size < INT_MAX ? (unsigned)size : INT_MAX);
}

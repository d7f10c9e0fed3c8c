/* A guest that opens and closes files. */
#include <wasi/api.h>

#define EXPORT(name) __attribute__((export_name(#name))) name

/* Creates a file in the first directory that the host opened for it; returns the descriptor, or minus the
 * error. */
int EXPORT(open_file)(void)
{
    __wasi_fd_t fd;
    __wasi_errno_t e = __wasi_path_open(3, 0, "hakmem-guest", __WASI_OFLAGS_CREAT,
                                        __WASI_RIGHTS_FD_READ | __WASI_RIGHTS_FD_WRITE, 0, 0, &fd);
    return e ? -(int)e : (int)fd;
}

int EXPORT(close_file)(int fd)
{
    return __wasi_fd_close((__wasi_fd_t)fd);
}

/* Whether the descriptor is open. */
int EXPORT(is_open)(int fd)
{
    __wasi_fdstat_t stat;
    return __wasi_fd_fdstat_get((__wasi_fd_t)fd, &stat) == 0;
}

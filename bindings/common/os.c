#include "common/os.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

static hak_os os;

static void decommit(void *user, void *p, size_t n)
{
    int saved = errno;
    os.decommit(user, p, n);
    errno = saved;
}

static void release(void *user, void *p, size_t n)
{
    int saved = errno;
    os.release(user, p, n);
    errno = saved;
}

/* Whether the kernel promises no more than it has. */
static bool counted(void)
{
    char mode = '0';
    int saved = errno, file = open("/proc/sys/vm/overcommit_memory", O_RDONLY | O_CLOEXEC);
    if (file >= 0) {
        if (read(file, &mode, 1) != 1) mode = '0';
        close(file);
    }
    errno = saved;
    return mode == '2';
}

void hkc_os(hak_os *out)
{
    hak_os_default(&os);
    if (counted()) hak_os_counted(&os);
    *out = os;
    out->decommit = decommit;
    out->release = release;
}

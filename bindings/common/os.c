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

static bool grants(const hak_os *table)
{
    const size_t n = (size_t)64 << 30;
    void *p = table->reserve(table->user, n, 4096, 0);
    if (p) table->release(table->user, p, n);
    return p;
}

/* Whether the kernel counts what may be written to as if it were used: since it promises no more than it has,
 * or for RLIMIT_DATA. */
static bool counts(const hak_os *counted)
{
    char mode = '0';
    int saved = errno, file = open("/proc/sys/vm/overcommit_memory", O_RDONLY | O_CLOEXEC);
    if (file >= 0) {
        if (read(file, &mode, 1) != 1) mode = '0';
        close(file);
    }
    bool all = mode == '2' || (!grants(&os) && grants(counted));
    errno = saved;
    return all;
}

void hkc_os(hak_os *out)
{
    hak_os_default(&os);
    hak_os counted = os;
    hak_os_counted(&counted);
    if (counts(&counted)) os = counted;
    *out = os;
    out->decommit = decommit;
    out->release = release;
}

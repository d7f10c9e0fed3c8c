#include "common/os.h"

#include <errno.h>

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

void hkc_os(hak_os *out)
{
    hak_os_default(&os);
    *out = os;
    out->decommit = decommit;
    out->release = release;
}

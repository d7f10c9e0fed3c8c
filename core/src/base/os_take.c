/* What is the same on all systems: tables of hosts are read, and objects get pages by them. */
#include "base/os.h"

#include <stdio.h>
#include <stdlib.h>

#ifdef HAKMEM_ASSERT
void hk_assert_failed(const char *what)
{
    fputs(what, stderr);
    __builtin_trap();
}
#endif

const char *hk_os_read(hak_os *to, const hak_os *from)
{
    if (!from) return hak_os_init(to, sizeof *to), NULL;
    if (!hak_sized_copy(to, sizeof *to, from)) return "hak_os.size is not set, or more is set than is known";
    if (!to->reserve || !to->decommit || !to->release || !to->clock)
        return "hak_os needs reserve, decommit, release and clock";
    return NULL;
}

static size_t pages_for(size_t n)
{
    return hk_align_up(n + 2 * HK_BESIDE, HK_PAGE);
}

void *hk_os_take(const hak_os *os, size_t n)
{
    size_t bytes = pages_for(n);
    if (hk_os_own(os)) {
        char *own = hk_os_map(bytes, HK_PAGE, 0);
        return own ? own + HK_BESIDE : NULL;
    }
    char *p = os->reserve(os->user, bytes, HK_PAGE, 0);
    if (p && os->commit && os->commit(os->user, p, bytes) != 0) {
        os->release(os->user, p, bytes);
        return NULL;
    }
    return p ? p + HK_BESIDE : NULL;
}

void hk_os_give(const hak_os *os, void *p, size_t n)
{
    os->release(os->user, (char *)p - HK_BESIDE, pages_for(n));
}

_Noreturn void hk_os_abort(void)
{
    abort();
}

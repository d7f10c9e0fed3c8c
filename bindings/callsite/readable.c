#define _GNU_SOURCE
#include "readable.h"

#include <errno.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { PAGE = 4096 };

/* The system copies the set of signals before it looks at what is to be done with it. Unlike calls that are
 * made for this, programs that restrict their own calls still allow it. */
static bool word_is_readable(uintptr_t address)
{
    enum { NO_SUCH_ACTION = 0x7f, SET_SIZE = 8 };
    const int saved = errno;
    const long result = syscall(SYS_rt_sigprocmask, NO_SUCH_ACTION, address, NULL, SET_SIZE);
    const bool unreadable = result != 0 && errno == EFAULT;
    errno = saved;
    return !unreadable;
}

bool hkc_readable(const void *p, size_t n)
{
    uintptr_t at = (uintptr_t)p & ~(uintptr_t)7;
    const uintptr_t end = (uintptr_t)p + n;
    if (end < (uintptr_t)p || at < PAGE) return false; /* at 0 there is no set to be copied */
    for (; at < end; at = (at | (PAGE - 1)) + 1)
        if (!word_is_readable(at)) return false;
    return true;
}

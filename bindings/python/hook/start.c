#define _GNU_SOURCE
#include "hook/start.h"

#include "base/await.h"
#include "base/cpython.h"
#include "heap/labels.h"
#include "hook/install.h"

#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

static bool limited; /* and Python is awaited */

void hkp_start_end(void)
{
    enum { STATUS = 2 }; /* of a command that is used in a wrong way, as `python -m hakmem run` ends with */
    for (;;)
        syscall(SYS_exit_group, STATUS);
}

void hkp_start_without(const char *why, bool with_limit)
{
    const char *then = with_limit ? "the limit (HAKMEM_LIMIT, --limit) would hold for nothing, and Python is "
                                    "not started"
                                  : "hakmem stays out";
    fprintf(stderr, "hakmem: %s; %s\n", why, then);
    if (with_limit) hkp_start_end();
}

void hkp_start_limited(void)
{
    limited = true;
}

void hkp_start_look(void)
{
    const hkp_python *python = limited && hkp_awaited ? hkp_python_find() : NULL;
    if (!python || python->is_initialized()) return;
    hkp_status status;
    hkp_status_get(&status, true);
    for (int d = HKP_RAW; d <= HKP_ARENA; d++) {
        if (status.state[d] != HKP_DISPLACED) continue;
        char why[160];
        snprintf(why, sizeof why,
                 "Python has taken another allocator for %s (PYTHONMALLOC, PYTHONDEVMODE or -X dev)",
                 hkp_domain_names[d]);
        hkp_start_without(why, true);
    }
}

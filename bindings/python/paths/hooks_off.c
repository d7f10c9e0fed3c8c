/* Provider "off": blocks have no label; how much each domain has is counted. Where there are several
 * interpreters, or scopes of the program, the domain in each interpreter is the label. */
#include "base/cpython.h"

#define HKP_HOOKS hkp_hooks_off
#include "paths/hooks_off.h"

static const char *start(hak_ctx *ctx)
{
    (void)ctx;
    const hkp_python *python = hkp_python_find();
    if (python && python->is_initialized()) hkp_interpreters_find();
    return NULL;
}

const hkp_provider hkp_provider_off = {.name = "off",
                                       .counts = true,
                                       .start = start,
                                       .hooks = &hkp_hooks_off,
                                       .profiled = &hkp_hooks_off_profiled};

/* Provider "off": blocks have no label; how much each domain has is counted. Where there are several
 * interpreters, or scopes of the program, the domain in each interpreter is the label. */
#include "base/cpython.h"
#include "heap/labels.h"
#include "paths/providers.h"

#define HKP_HOOKS hkp_hooks_off
#define HKP_COUNTED 1
#define HKP_LABEL(domain, where) ((void)(domain), (void)(where), hkp_domain_label())
#define HKP_LABEL_FIND(domain, where) ((void)(where), hkp_domain_label_find(domain))
#include "paths/hooks.h"

static const char *start(hak_ctx *ctx)
{
    (void)ctx;
    const hkp_python *python = hkp_python_find();
    if (python && python->is_initialized()) hkp_interpreters_find();
    return NULL;
}

const hkp_provider hkp_provider_off = {
    .name = "off", .counts = true, .start = start, .hooks = &hkp_hooks_off};

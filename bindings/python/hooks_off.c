/* Provider "off": blocks have no label; how much each domain has is counted. Where there are several
 * interpreters, or scopes of the program, the domain in each interpreter is the label. */
#include "interpreters.h"
#include "provider.h"
#include "python.h"

#define HK_PY_HOOKS hk_py_hooks_off
#define HK_PY_COUNTED 1
#define HK_PY_LABEL(domain, where) ((void)(domain), (void)(where), hk_py_domain_label())
#define HK_PY_LABEL_FIND(domain, where) ((void)(where), hk_py_interpreters_label(domain))
#include "hooks.h"

static const char *start(hak_ctx *ctx)
{
    (void)ctx;
    const hk_py_python *python = hk_py_python_find();
    if (python && python->is_initialized()) hk_py_interpreters_find();
    return NULL;
}

const hk_py_provider hk_py_provider_off = {"off", start, &hk_py_hooks_off, NULL, NULL};

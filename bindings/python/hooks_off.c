/* Provider "off": the domain is the label. */
#include "provider.h"

#define HK_PY_HOOKS hk_py_hooks_off
#define HK_PY_LABEL(domain, n, caller) HK_PY_DOMAIN_LABEL(domain)
#include "hooks.h"

static const char *start(hak_ctx *ctx)
{
    (void)ctx;
    return NULL;
}

const hk_py_provider hk_py_provider_off = {"off", start, &hk_py_hooks_off, NULL};

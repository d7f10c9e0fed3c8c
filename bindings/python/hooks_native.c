/* Provider "native": the part of CPython, or the extension, that asked. */
#include "native.h"
#include "provider.h"

#define HK_PY_HOOKS hk_py_hooks_native
#define HK_PY_WHERE() HK_CFI_CALLER_SP()
#define HK_PY_WHERE_FP(where) HK_PY_CALLER_FP(where)
#define HK_PY_LABEL(domain, where) ((void)(domain), hk_py_native_label(where))
#define HK_PY_LABEL_FIND(domain, where, fp) ((void)(domain), hk_py_native_find(where, fp))
#include "hooks.h"

static void report(FILE *out, bool gil)
{
    static const char *const sources[] = {"none", "dynsym", "debug", "symtab"};
    (void)gil;
    fprintf(out, ",\"symbols\":\"%s\"", sources[hk_py_native_source()]);
}

const hk_py_provider hk_py_provider_native = {"native", hk_py_native_start, &hk_py_hooks_native, report};

/* Provider "native": the part of CPython, or the extension, that asked. */
#include "native.h"
#include "provider.h"

#define HK_PY_HOOKS hk_py_hooks_native
#include "hooks.h"

static void report(FILE *out, bool gil)
{
    static const char *const sources[] = {"none", "dynsym", "debug", "symtab"};
    (void)gil;
    fprintf(out, ",\"symbols\":\"%s\"", sources[hk_py_native_source()]);
}

const hk_py_provider hk_py_provider_native = {"native", hk_py_native_start, &hk_py_hooks_native, report,
                                              hk_py_native_await};

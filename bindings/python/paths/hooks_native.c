/* Provider "native": the part of CPython, or the extension, that asked. */
#include "base/json.h"
#include "native/native.h"
#include "paths/providers.h"

#define HKP_HOOKS hkp_hooks_native
#include "paths/hooks.h"

static void report(hkp_out *out, bool gil)
{
    static const char *const sources[] = {"none", "dynsym", "debug", "symtab"};
    (void)gil;
    hkp_out_format(out, ",\"symbols\":\"%s\"", sources[hkp_native_source()]);
}

const hkp_provider hkp_provider_native = {"native",          false,  false,           hkp_native_start,
                                          &hkp_hooks_native, report, hkp_native_await, NULL};

/* Provider "native": the part of CPython, or the extension, that asked. */
#include "common/json.h"
#include "native/kinds.h"
#include "native/native.h"
#include "paths/providers.h"

#define HKP_HOOKS hkp_hooks_native
#include "paths/hooks.h"

static void report(hkc_json *w)
{
    static const char *const sources[] = {"none", "dynsym", "debug", "symtab"};
    hkc_json_text(w, "symbols", sources[hkp_native_source()]);
    hkp_mixed mixed[HKP_KINDS];
    const size_t count = hkp_kinds_mixed(mixed);
    hkc_json_object(w, "mixed");
    for (size_t i = 0; i < count; i++)
        hkc_json_text(w, mixed[i].kind, mixed[i].label);
    hkc_json_end(w);
}

const hkp_provider hkp_provider_native = {.name = "native",
                                          .start = hkp_native_start,
                                          .hooks = &hkp_hooks_native,
                                          .profiled = &hkp_hooks_native_profiled,
                                          .report = report,
                                          .await = hkp_native_await};

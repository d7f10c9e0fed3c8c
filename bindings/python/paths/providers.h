/* The label providers that there are, one of which an installation chooses. */
#ifndef HKP_PROVIDERS_H
#define HKP_PROVIDERS_H

#include "base/core.h"

/* Hooks, and the same for as long as a profile runs. */
extern const hkp_hooks hkp_hooks_off, hkp_hooks_off_profiled;
extern const hkp_provider hkp_provider_off;

extern const hkp_hooks hkp_hooks_native, hkp_hooks_native_profiled;
extern const hkp_provider hkp_provider_native;

/* Their hooks are those of the version of CPython, from the start on. */
extern const hkp_hooks hkp_hooks_site_3_10, hkp_hooks_site_3_11, hkp_hooks_site_3_12, hkp_hooks_site_3_13,
    hkp_hooks_site_3_14;
extern const hkp_hooks hkp_hooks_site_3_10_profiled, hkp_hooks_site_3_11_profiled,
    hkp_hooks_site_3_12_profiled, hkp_hooks_site_3_13_profiled, hkp_hooks_site_3_14_profiled;
extern hkp_provider hkp_provider_site;

/* NULL = no such provider. */
const hkp_provider *hkp_provider_find(const char *name);

#endif

/* The label providers that there are, one of which an installation chooses. */
#ifndef HKP_PROVIDERS_H
#define HKP_PROVIDERS_H

#include "base/core.h"

extern const hkp_hooks hkp_hooks_off;
extern const hkp_provider hkp_provider_off;

extern const hkp_hooks hkp_hooks_native;
extern const hkp_provider hkp_provider_native;

/* Their hooks are those of the version of CPython, from the start on. */
extern const hkp_hooks hkp_hooks_site_3_10, hkp_hooks_site_3_11, hkp_hooks_site_3_12, hkp_hooks_site_3_13;
extern hkp_provider hkp_provider_site;

/* NULL = no such provider. */
const hkp_provider *hkp_provider_find(const char *name);

#endif

/* The label providers that there are. */
#ifndef HK_PY_PROVIDER_H
#define HK_PY_PROVIDER_H

#include "core.h"

extern const hk_py_hooks hk_py_hooks_off;
extern const hk_py_provider hk_py_provider_off;

extern const hk_py_hooks hk_py_hooks_native;
extern const hk_py_provider hk_py_provider_native;

/* Their hooks are those of the version of CPython, from the start on. */
extern const hk_py_hooks hk_py_hooks_site_3_10, hk_py_hooks_site_3_11, hk_py_hooks_site_3_12,
    hk_py_hooks_site_3_13;
extern hk_py_provider hk_py_provider_site;

#endif

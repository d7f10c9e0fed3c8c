/* The label providers that there are. */
#ifndef HK_PY_PROVIDER_H
#define HK_PY_PROVIDER_H

#include "core.h"

extern const hk_py_hooks hk_py_hooks_off;
extern const hk_py_provider hk_py_provider_off;

extern const hk_py_hooks hk_py_hooks_native;
extern const hk_py_provider hk_py_provider_native;

extern const hk_py_hooks hk_py_hooks_site;
extern const hk_py_provider hk_py_provider_site;

#endif

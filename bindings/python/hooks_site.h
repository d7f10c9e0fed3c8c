/* The hooks of provider "site" for one version of CPython: included with HK_PY_LAYOUT and HK_PY_HOOKS. */
#include "native.h"
#include "provider.h"
#include "site.h"

#define HK_PY_ROUND(n) hk_py_site_round(n)
#define HK_PY_LAST(n) hk_py_site_last(n)
#define HK_PY_MARK(domain) ((domain) != HK_PY_RAW ? hk_py_place_now(HK_PY_LAYOUT) : 0)
#define HK_PY_MARK_FIND(domain) ((domain) != HK_PY_RAW ? hk_py_place_find() : 0)
#define HK_PY_PLACED(p, n, mark) hk_py_site_put(p, n, (hk_py_site_mark)(mark))
#define HK_PY_MARKED(p, mark) hk_py_site_mark_end(p, (hk_py_site_mark)(mark))
#include "hooks.h"

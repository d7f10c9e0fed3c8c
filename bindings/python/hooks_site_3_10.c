#define HK_PY_LAYOUT HK_PY_3_10
#define HK_PY_HOOKS hk_py_hooks_site_3_10
#include "hooks_site.h"

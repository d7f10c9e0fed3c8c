#define HK_PY_LAYOUT HK_PY_3_13
#define HK_PY_HOOKS hk_py_hooks_site_3_13
#include "hooks_site.h"

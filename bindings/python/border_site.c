#include "seldom.h"

HK_PY_BORDER(site)

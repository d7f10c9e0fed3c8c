#include "seldom.h"

HK_PY_BORDER(native)

#define HKP_LAYOUT HKP_3_13
#define HKP_HOOKS hkp_hooks_site_3_13
#include "paths/hooks_site.h"

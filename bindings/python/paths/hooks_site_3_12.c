#define HKP_LAYOUT HKP_3_12
#define HKP_HOOKS hkp_hooks_site_3_12
#include "paths/hooks_site.h"

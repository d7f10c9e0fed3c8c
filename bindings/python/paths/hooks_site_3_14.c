#define HKP_LAYOUT HKP_3_14
#define HKP_HOOKS hkp_hooks_site_3_14
#include "paths/hooks_site.h"

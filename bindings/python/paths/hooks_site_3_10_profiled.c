#define HKP_PROFILED 1
#define HKP_LAYOUT HKP_3_10
#define HKP_HOOKS hkp_hooks_site_3_10_profiled
#include "paths/hooks_site.h"

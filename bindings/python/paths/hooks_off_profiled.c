#define HKP_PROFILED 1
#define HKP_HOOKS hkp_hooks_off_profiled
#include "paths/hooks_off.h"

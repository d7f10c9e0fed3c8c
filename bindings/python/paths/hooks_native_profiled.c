#include "native/native.h"
#include "paths/providers.h"

#define HKP_PROFILED 1
#define HKP_HOOKS hkp_hooks_native_profiled
#include "paths/hooks.h"

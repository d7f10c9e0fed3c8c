#include "context.h"

hks_context hks_process;

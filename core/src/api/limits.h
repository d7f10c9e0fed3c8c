#ifndef HK_LIMITS_H
#define HK_LIMITS_H

#include "heap/ctx.h"

/* Calls the pressure callback if a crossing is pending. First thing on every slow path that allocates. */
HK_COLD void hk_pressure(hak_ctx *ctx);

#endif

#ifndef HK_ERRORS_H
#define HK_ERRORS_H

#include "heap/ctx.h"

/* Counts a failed allocation; returns NULL. */
HK_COLD void *hk_fail(hak_ctx *ctx);

#endif

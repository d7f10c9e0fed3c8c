/* The end of retired contexts, for the paths that free. */
#ifndef HK_CONTEXT_H
#define HK_CONTEXT_H

#include "heap/ctx.h"

/* Destroys a retired context that has no block left. */
void hk_retire_check(hak_ctx *ctx);

#endif

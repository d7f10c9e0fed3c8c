/* Turns the numbers of a context's tuning into the form in which its slow paths read them. */
#ifndef HK_NUMBERS_H
#define HK_NUMBERS_H

#include "heap/ctx.h"

/* The numbers of a new context, and those that one has. */
void hk_numbers_set(hak_ctx *ctx, const hak_tuning *t);
void hk_numbers_get(const hak_ctx *ctx, hak_tuning *t);
/* The numbers change: magazines and caches follow. By the thread of a local context or heap, whose lock it
 * holds. */
void hk_numbers_change(hak_ctx *ctx, const hak_tuning *t);

#endif

/* Turns the settings of a context into the form in which its slow paths read them. */
#ifndef HK_APPLY_HEAP_H
#define HK_APPLY_HEAP_H

#include "heap/ctx.h"

/* Sets those of a new context; shows those that one has, those of its space included. */
void hk_heap_settings_set(hak_ctx *ctx, const hak_tuning *t);
void hk_heap_settings_get(const hak_ctx *ctx, hak_tuning *t);
/* Sets other ones: magazines and caches follow. By the thread of a local context or heap, whose lock it
 * holds. */
void hk_heap_settings_change(hak_ctx *ctx, const hak_tuning *t);

#endif

/* What a context tells its learner. */
#ifndef HK_API_LEARNER_H
#define HK_API_LEARNER_H

#include "heap/ctx.h"

/* The context, which has a learner, was ticked; it ends. */
void hk_learner_tick(hak_ctx *ctx, uint64_t now_ns);
void hk_learner_forget(hak_ctx *ctx);

#endif

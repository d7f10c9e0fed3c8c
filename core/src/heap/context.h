/* Begins a context, in its first unit, and ends it. */
#ifndef HK_HEAP_CONTEXT_H
#define HK_HEAP_CONTEXT_H

#include "heap/ctx.h"

/* How many packed units such a context may have, or each heap of a shared one; 0 = none. */
size_t hk_packed_units(const hak_options *o, const hak_tuning *t);
/* Makes a context of the space from complete, valid options, with room for `more` bytes of zeros at
 * hk_behind(). It is not in the list of accounts yet. */
hak_ctx *hk_ctx_new(hak_space *space, const hak_options *o, size_t more);
/* Gives back all that it owns; its big blocks are gone, and its account is settled. */
void hk_ctx_end(hak_ctx *ctx);
/* The bytes behind the context in its unit. */
HK_INLINE void *hk_behind(hak_ctx *ctx)
{
    return (char *)ctx + hk_align_up(sizeof *ctx, 64);
}

#endif

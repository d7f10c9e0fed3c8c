/* HAK_DEBUG_TRACE: the last calls of a context, see hakmem/trace.h. Written under the lock of a shared context, read
 * without one. */
#ifndef HK_TRACE_H
#define HK_TRACE_H

#include "hakmem/trace.h"

#include "heap/ctx.h"

/* In place of a size that a free is told: the free is kept already, or is none of the host's. */
#define HK_NOTED (HAK_NONE - 2)

/* The context keeps so many calls. false = no memory. */
bool hk_trace_begin(hak_ctx *ctx, size_t calls);
/* Keeps a call, of a context with or without HAK_DEBUG_TRACE. No lock is held. */
HK_COLD void hk_trace_note(const hak_ctx *ctx, hak_trace_kind kind, const void *p, size_t n, hak_label label,
                           hak_site site);
/* A free of p, which may be anything. */
HK_COLD void hk_trace_freed(const hak_ctx *ctx, const void *p, hak_site site);

#endif

/* HAK_DEBUG_TRACE: keeps the last calls of a context, see hakmem/trace.h. Writers hold the lock of a shared
 * context; readers take none. */
#ifndef HK_TRACE_H
#define HK_TRACE_H

#include "hakmem/trace.h"

#include "heap/ctx.h"

/* Passed as the told size of a free: the trace has this free already, or the host did not ask for it. */
#define HK_NOTED (HAK_NONE - 2)

enum { HK_TRACE_LEAST = 16, HK_TRACE_MOST = 32768 };
/* The context records its last `calls` calls (0 = 1024) from now on. false = no memory. */
bool hk_trace_begin(hak_ctx *ctx, size_t calls);
/* Records a call; does nothing in a context without HAK_DEBUG_TRACE. The caller holds no lock. */
HK_COLD void hk_trace_note(const hak_ctx *ctx, hak_trace_kind kind, const void *p, size_t n, hak_label label,
                           hak_site site);
/* Records a free of p, which may be any pointer. */
HK_COLD void hk_trace_freed(const hak_ctx *ctx, const void *p, hak_site site);

#endif

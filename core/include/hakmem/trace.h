/* hakmem, trace: the last calls of a context, to be printed when misuse is reported.
 *
 *       static void on_error(void *user, hak_error error, const void *p, const char *what)
 *       {
 *           host *h = user;
 *           char text[2048];
 *           fprintf(stderr, "%s: %p: %s\n", hak_error_name(error), p, what);
 *           fwrite(text, 1, hak_trace_text(h->ctx, p, text, sizeof text), stderr);
 *       }
 *       ...
 *       options.debug = HAK_DEBUG_TRACE;
 *
 * prints for a block that is freed twice
 *
 *       HAK_E_DOUBLE_FREE: 0x7f2b6c3f1fd0: the block is free already
 *         call 812: allocated 48 bytes at 0x7f2b6c3f1fd0, label table, site 0x55d0c1a2b3c4, thread 4711
 *         call 907: freed 48 bytes at 0x7f2b6c3f1fd0, site 0x55d0c1a2b400, thread 4711
 *         call 911: freed 48 bytes at 0x7f2b6c3f1fd0, site 0x55d0c1a2b41c, thread 4712
 *
 * KEPT       The last hak_options.trace_calls calls, of all threads of a shared context together: successful
 *            allocations, reallocations, and frees of anything but NULL, misuse included. A reallocation that
 *            moves the block is followed by an allocation, and by a free unless its pages were moved. A call
 *            is kept before its misuse is reported, so it is the last one in the history.
 * PAGES      The ring is made with the context, in units of the context, and ends with it. Each call takes 48
 *            bytes, which count as metadata_bytes and are charged to the quota.
 * COST       Off: none. On: the cost of HAK_DEBUG_CHECK, about 180 instructions more for each call, and one
 *            question to the OS table for the thread's number; in a shared context also a lock.
 *
 * STABILITY  Stable.
 *
 * CONVENTIONS are those of hakmem.h. Since 0.1. */
#ifndef HAKMEM_TRACE_H
#define HAKMEM_TRACE_H

#include <hakmem/hakmem.h>
#include <hakmem/profile.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum hak_trace_kind { HAK_TRACE_ALLOC = 1, HAK_TRACE_REALLOC, HAK_TRACE_FREE } hak_trace_kind;

typedef struct hak_trace_call {
    uint64_t number; /* of the context's calls, from 1 */
    hak_trace_kind kind;
    hak_label label; /* 0 for a free */
    const void *p;   /* what an allocation returned; what a reallocation or free was given */
    size_t n;        /* requested bytes; for a free those of the block, 0 = p was never a block */
    hak_site site;   /* given to hak_alloc_cs, hak_free_cs and the like, or by hak_trace_frames; 0 =
                        unknown */
    uint64_t thread; /* from hak_os.thread_id; 0 = unknown */
} hak_trace_call;

/* Return false to stop. */
typedef bool hak_trace_fn(void *user, const hak_trace_call *call);
/* Calls fn for each kept call, the oldest first; if p is not NULL, only for calls with a block that contains
 * p. Returns 0 if all were visited, 1 if fn stopped, -1 if the context has no HAK_DEBUG_TRACE. Takes no lock
 * and never dereferences p: on_error and a signal handler may call it. A call that another thread is writing
 * at the time is left out. Cost: some steps for each kept call. Since 0.1. [any thread] */
HAK_API int hak_trace_visit(const hak_ctx *ctx, const void *p, hak_trace_fn *fn, void *user);
/* Writes the same as lines of text: whole lines, at most `room` bytes with the terminating 0, the newest ones
 * if not all fit. Returns the number of bytes without that 0; 0 = no call is kept. Uses no stdio. Cost: twice
 * that of hak_trace_visit. Since 0.1. [any thread] */
HAK_API size_t hak_trace_text(const hak_ctx *ctx, const void *p, char *out, size_t room);
/* Sets a function whose innermost frame becomes the site of calls that were given none. NULL = none. fn runs
 * on the thread of the call, with no lock held; its `room` is 1. No other thread may be inside a call of the
 * context. No effect without HAK_DEBUG_TRACE. Cost: constant. Since 0.1. */
HAK_API void hak_trace_frames(hak_ctx *ctx, hak_frames_fn *fn, void *user);

#ifdef __cplusplus
}
#endif
#endif

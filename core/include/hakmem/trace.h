/* hakmem, trace: the last calls of a context, for who is told of misuse.
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
 * prints, of a block that is freed twice,
 *
 *       HAK_E_DOUBLE_FREE: 0x7f2b6c3f1fd0: the block is free already
 *         call 812: allocated 48 bytes at 0x7f2b6c3f1fd0, label table, site 0x55d0c1a2b3c4, thread 4711
 *         call 907: freed 48 bytes at 0x7f2b6c3f1fd0, site 0x55d0c1a2b400, thread 4711
 *         call 911: freed 48 bytes at 0x7f2b6c3f1fd0, site 0x55d0c1a2b41c, thread 4712
 *
 * KEPT       hak_options.trace_calls calls, the last ones, of all threads of a shared context together: allocations
 *            that succeeded, reallocations and frees of anything but NULL, those that are misuse included. A
 *            reallocation that moves a block is followed by an allocation, and by a free unless pages were moved. A call is kept before what
 *            is wrong with it is reported, so that it is the last one in its history.
 * PAGES      The ring is made with the context, of its units: 48 bytes for each call, in its metadata_bytes and
 *            charged to its quota. It ends with the context.
 * COST       Off: none. On: that of HAK_DEBUG_CHECK, about 180 instructions for each call, and the question to the
 *            OS table which thread it is; in a shared context a lock.
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
    hak_label label;  /* of a free 0 */
    const void *p;    /* of an allocation what was returned, of the others what was given */
    size_t n;         /* bytes asked for; of a free those last asked for with p, 0 = p was never a block */
    hak_site site;    /* as given to hak_alloc_cs, hak_free_cs and their like, or by hak_trace_frames; 0 = unknown */
    uint64_t thread;  /* as hak_os.thread_id tells it; 0 = unknown */
} hak_trace_call;

/* Return false to stop. */
typedef bool hak_trace_fn(void *user, const hak_trace_call *call);
/* Calls fn for each call that is kept, the oldest first; with p only for those whose bytes p is in, or at whose
 * start. 0 = all seen, 1 = stopped by fn, -1 = the context has no HAK_DEBUG_TRACE. Takes no lock and never
 * dereferences p: on_error and a signal handler may call it. A call that another thread is keeping meanwhile is left
 * out. [any thread] Cost: some steps for each call that is kept. Since 0.1. */
HAK_API int hak_trace_visit(const hak_ctx *ctx, const void *p, hak_trace_fn *fn, void *user);
/* The same as lines of text: at most room - 1 bytes, of whole lines, and a zero; the newest ones if not all fit.
 * Returns the bytes without the zero; 0 = there is none. Uses no stdio. [any thread] Cost: twice that of
 * hak_trace_visit. Since 0.1. */
HAK_API size_t hak_trace_text(const hak_ctx *ctx, const void *p, char *out, size_t room);
/* Who tells the site of calls that are given none, from now on: the innermost frame; NULL = nobody. `fn` runs on the
 * thread of the call, with no lock held; room is 1. No other thread may be inside a call of the context. Without
 * HAK_DEBUG_TRACE: no effect. Cost: constant. Since 0.1. */
HAK_API void hak_trace_frames(hak_ctx *ctx, hak_frames_fn *fn, void *user);

#ifdef __cplusplus
}
#endif
#endif

/* What is kept of the last calls. */
#include "costs.h"

#include <hakmem/trace.h>

static bool see(void *user, const hak_trace_call *call)
{
    (void)user;
    sink += call->n;
    return true;
}

static void visit(size_t i)
{
    (void)i;
    must(hak_trace_visit(ctx, NULL, see, NULL) == 0);
}

static void visit_one(size_t i)
{
    must(hak_trace_visit(ctx, blocks[i], see, NULL) == 0);
}

static void one_as_text(size_t i)
{
    static char out[1024];
    must(hak_trace_text(ctx, blocks[i], out, sizeof out) > 0);
}

static void trace_frames(size_t i)
{
    (void)i;
    hak_trace_frames(ctx, NULL, NULL);
}

/* n calls are kept, a power of two. */
void measure_trace(size_t n)
{
    hak_options traced = HAK_OPTIONS_INIT;
    traced.debug = HAK_DEBUG_TRACE;
    traced.trace_calls = n;
    begin(&traced);
    for (count = 0; count < n; count++)
        must((blocks[count] = hak_alloc(ctx, 64)) != NULL);
    measure("trace_visit", n, 10, visit);
    measure("trace_visit one", n, 10, visit_one);
    measure("trace_text", n, 10, one_as_text);
    measure("trace_frames", n, 10, trace_frames);
    end();
}

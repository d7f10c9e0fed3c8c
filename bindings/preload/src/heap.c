#include "heap.h"

#include "aside.h"
#include "common/process.h"
#include "context.h"
#include "guard.h"
#include "places.h"
#include "profile.h"
#include "report.h"
#include "settings.h"
#include "token_slots.h"

#include <hakmem/trace.h>

_Thread_local hak_ctx *hks_thread_heap __attribute__((tls_model("initial-exec")));
bool hks_heap_patterns;

static _Thread_local bool ended __attribute__((tls_model("initial-exec")));

/* In a child, until its first call: what was lost with the other threads is to be begun again. */
static bool listen_due;
static hak_ctx *forked; /* this thread's heap */

/* What is freed later goes through the shared context. */
static void thread_end(void)
{
    ended = true;
    hks_thread_heap = NULL;
    hks_token_forget();
    atomic_fetch_add(&hks_process.threads_gone, 1);
}

/* Of all threads, the one that forked is left. */
static void in_child(void)
{
    atomic_store(&hks_process.threads_gone, atomic_load(&hks_process.threads) - (hks_thread_heap ? 1 : 0));
    listen_due = hks_profile_in_child();
    if (!listen_due) return;
    forked = hks_thread_heap;
    hks_thread_heap = NULL;
    hks_token_forget();
}

enum { SITES = 16 };

typedef struct sites {
    uintptr_t at[SITES];
    size_t n;
} sites;

static bool note_site(void *user, const hak_trace_call *call)
{
    sites *s = user;
    if (call->site != 0 && s->n < SITES) s->at[s->n++] = call->site;
    return s->n < SITES;
}

/* Runs with a lock of the heap held. */
static void misused(void *user, hak_error error, const void *p, const char *what)
{
    (void)user;
    hak_ctx *ctx = hks_context_made();
    if (!hks_report_misuse(hak_error_name(error), p, what) || !ctx || !p) return;
    char text[2048];
    sites s = {.n = 0};
    hks_report_text(text, hak_trace_text(ctx, p, text, sizeof text));
    hak_trace_visit(ctx, p, note_site, &s);
    hks_report_text(text, hks_places_text(s.at, s.n, text, sizeof text));
}

static void set_checks(hak_options *options, const hks_settings *settings)
{
    if (settings->canary) options->debug |= HAK_DEBUG_CANARY;
    if (settings->quarantine) options->debug |= HAK_DEBUG_QUARANTINE;
    if (settings->trace != 0) options->debug |= HAK_DEBUG_TRACE;
    options->trace_calls = settings->trace;
    if (settings->check != HKS_CHECK_OFF) options->debug |= HAK_DEBUG_CHECK;
    if (settings->check == HKS_CHECK_ABORT) options->debug |= HAK_DEBUG_ABORT;
    if (options->debug) options->on_error = misused;
    hks_heap_patterns = options->debug & (HAK_DEBUG_CANARY | HAK_DEBUG_GUARD);
}

static hak_ctx *make(void)
{
    if (hks_aside()) return NULL;
    const hks_settings *settings = hks_settings_get();
    hak_space_options space_options = HAK_SPACE_OPTIONS_INIT;
    space_options.mode = settings->mode;
    space_options.policy = settings->policy;
    space_options.reserve = settings->reserve;
    hak_space *space = hak_space_new(&space_options);
    if (!space) return NULL;
    hak_options options = HAK_OPTIONS_INIT;
    options.mode = settings->mode;
    options.policy = settings->policy;
    options.shared = true;
    options.max_align = true;
    options.workload =
        HAK_WORKLOAD_MALLOC; /* a queue frees in the order of addresses, too, and is no sweep */
    options.name = hks_process.name;
    hak_tuning tuning;
    hks_guard_options(&options, &tuning);
    set_checks(&options, settings);
    hak_ctx *made = hak_ctx_new(space, &options);
    hak_ctx *first = NULL;
    if (!made || !atomic_compare_exchange_strong(&hks_process.made, &first, made)) {
        hak_space_delete(space);
        return first;
    }
    /* The first handlers of the process: prepare runs after all others, which may allocate. */
    hkc_process_begin(made, thread_end, in_child);
    hks_guard_begin(made);
    hak_trace_frames(made, hks_profile_frames, NULL);
    hks_profile_begin(made);
    return made;
}

hak_ctx *hks_heap_shared(void)
{
    hak_ctx *ctx = hks_context_made();
    return HKS_LIKELY(ctx) ? ctx : make();
}

hak_ctx *hks_heap_of_thread(void)
{
    hak_ctx *ctx = hks_heap_shared();
    if (!ctx || ended) return ctx;
    hak_ctx *heap = forked ? forked : hak_ctx_thread(ctx);
    if (!heap) return ctx;
    hks_thread_heap = heap; /* first: what is below may allocate */
    if (heap != forked) {
        atomic_fetch_add(&hks_process.threads, 1);
        hkc_process_thread();
    }
    forked = NULL;
    if (listen_due) {
        listen_due = false;
        hks_profile_listen();
    }
    return heap;
}

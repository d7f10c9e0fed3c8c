#include "guard.h"

#include "context.h"
#include "places.h"
#include "profile.h"
#include "report.h"
#include "settings.h"

#include <hakmem/guard.h>

#include <signal.h>
#include <string.h>

void hks_guard_options(hak_options *options, hak_tuning *tuning)
{
    size_t every = hks_settings_get()->guard;
    if (every == 0) return;
    *tuning = (hak_tuning)HAK_TUNING_INIT;
    tuning->guard_every = every;
    options->debug |= HAK_DEBUG_GUARD;
    options->tuning = tuning;
}

void hks_guard_begin(hak_ctx *ctx)
{
    if (hks_settings_get()->guard != 0) hak_guard_frames(ctx, hks_profile_frames, NULL);
}

typedef struct text {
    char bytes[2048];
} text;

static void put_places(const hak_guard_event *event, text *t)
{
    hks_report_text(t->bytes, hks_places_text(event->frames, event->depth, t->bytes, sizeof t->bytes));
}

/* One text for all, as the stack may have 16 KiB, of which the kernel has taken three for the signal. The
 * fault comes again when this returns, and ends the process as it would have without. */
static void fault(int number, siginfo_t *info, void *unused)
{
    hak_guard_report report = HAK_GUARD_REPORT_INIT;
    text t;
    (void)unused;
    signal(number, SIG_DFL);
    if (info->si_code <= 0) { /* one that was sent does not come again by itself */
        raise(number);        /* blocked until this returns */
        return;
    }
    if (!hak_guard_explain(hks_context_made(), info->si_addr, &report) || report.error == HAK_OK) return;
    hks_report_text(t.bytes, hak_guard_text(&report, t.bytes, sizeof t.bytes));
    put_places(&report.allocated, &t);
    put_places(&report.released, &t);
}

void hks_guard_listen(void)
{
    static const int signals[] = {SIGSEGV, SIGBUS};
    for (size_t i = 0; hks_settings_get()->guard != 0 && i < sizeof signals / sizeof *signals; i++) {
        struct sigaction before, action = {.sa_flags = SA_SIGINFO | SA_ONSTACK};
        action.sa_sigaction = fault;
        sigemptyset(&action.sa_mask);
        if (sigaction(signals[i], NULL, &before) == 0 && before.sa_handler == SIG_DFL)
            sigaction(signals[i], &action, NULL);
    }
}

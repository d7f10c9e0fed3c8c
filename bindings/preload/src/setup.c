/* What happens at the start and at the end of the program. */
#include "guard.h"
#include "heap.h"
#include "profile.h"
#include "report.h"
#include "settings.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <time.h>

/* The one thread of the shim, only when asked for. A forked child goes without. */
static void *trimmer(void *unused)
{
    for (;;) {
        struct timespec period = {.tv_sec = (time_t)hks_settings_get()->trim};
        nanosleep(&period, NULL);
        hak_ctx_trim(hks_heap_shared());
    }
    return unused;
}

static void start_trimmer(void)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pthread_t thread;
    if (pthread_create(&thread, NULL, trimmer, NULL) == 0) pthread_detach(thread);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* 101: before the constructors of the program. The first allocations are earlier still; they need nothing
 * of this. */
__attribute__((constructor(101))) static void begin(void)
{
    hak_ctx *ctx = hks_heap_shared();
    const hks_settings *settings = hks_settings_get();
    strncpy(hks_heap_name, *settings->name != '\0' ? settings->name : program_invocation_short_name,
            sizeof hks_heap_name - 1);
    if (!ctx) return;
    if (settings->limit != 0) hak_limit(ctx, 0, settings->limit, NULL, NULL);
    if (settings->report || settings->check || settings->guard != 0 || *settings->profile != '\0' || *settings->live != '\0')
        hks_report_open(settings->file);
    if (settings->trim != 0) start_trimmer();
    hks_guard_listen();
    hks_profile_listen();
}

/* The context stays: what runs after this may still allocate and free. */
__attribute__((destructor(101))) static void end(void)
{
    if (hks_settings_get()->report) hks_report_write();
    hks_profile_end();
}

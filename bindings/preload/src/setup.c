/* What happens at the start and at the end of the program. */
#include "aside.h"
#include "common/costs.h"
#include "common/file.h"
#include "common/helper.h"
#include "common/learn.h"
#include "context.h"
#include "guard.h"
#include "heap.h"
#include "mapped.h"
#include "profile.h"
#include "report.h"
#include "settings.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static hkc_learning learning;
static atomic_bool learning_taken, learning_begun;
static pid_t main_process; /* a child that was forked learns nothing */

enum { BRIEF_NS = 100000000 };

static bool begin_learning(void)
{
    const hks_settings *settings = hks_settings_get();
    if (atomic_exchange(&learning_taken, true)) return false; /* the program may end just then */
    if (hkc_learn_start(&learning, hks_heap_shared(), &settings->memory, settings->mode == HAK_MODE_RESEARCH))
        return true;
    hks_report_line("learn: no memory");
    return false;
}

/* The one thread of the shim, only when asked for. A forked child goes without. The learner only looks: a tick
 * would give pages back that stay without a learner, and the program would pay for them again. */
static void keeper(void)
{
    const hks_settings *settings = hks_settings_get();
    const bool ticks = hks_settings_learn(settings);
    const uint64_t second = 1000000000, step = ticks ? second / 4 : settings->trim * second;
    for (uint64_t slept = 0;;) {
        struct timespec period = {(time_t)(step / second), (long)(step % second)};
        nanosleep(&period, NULL);
        /* A learner costs a brief program more pages than the program itself takes, and on a machine that is
         * busy a brief program takes long. */
        const bool begun = atomic_load(&learning_begun);
        if (ticks && !begun && hkc_costs_cpu_ns() >= BRIEF_NS && begin_learning())
            atomic_store(&learning_begun, true);
        if (begun) hak_learner_look(hks_heap_shared(), 0);
        slept += step;
        if (settings->trim == 0 || slept < settings->trim * second) continue;
        hak_ctx_trim(hks_heap_shared());
        slept = 0;
    }
}

static void begin_keeper(void)
{
    pthread_t thread;
    const int error = hkc_helper_begin(keeper, 0, &thread);
    if (error) hks_report_failed("trim or learning", "a thread of its own", error);
}

/* A process that was over before its first window leaves the file as it is: a shell that starts the program,
 * say. Where there is no file yet, its first one says what there is to say. */
static void learned(void)
{
    hak_learner_info info = {.size = sizeof info};
    const hks_settings *settings = hks_settings_get();
    const char *file = *settings->learn != '\0' ? settings->learn : NULL;
    if (!hks_settings_learn(settings)) return;
    const bool begun = atomic_load(&learning_begun);
    if (!begun && (main_process != getpid() || !file || access(file, F_OK) == 0 || !begin_learning())) return;
    if (!learning.learner || hak_learner_stats(learning.learner, &info) != 0) return;
    const bool brief = file && info.windows == 0 && access(file, F_OK) == 0;
    const int told = settings->mode == HAK_MODE_RESEARCH && !file ? hks_report_descriptor() : -1;
    const int error = hkc_learn_finish(&learning, brief ? NULL : file, told);
    if (error && file) hks_report_failed("learn", file, error);
}

/* What cannot be had is told, and is no reason not to start unless it protects. */
static void step_aside(const hks_settings *settings, const char *why)
{
    char line[HKC_FILE_NAME + 128];
    const bool stops = hks_settings_protect(settings);
    snprintf(line, sizeof line, "%s, which the shim does not replace: %s", why,
             stops ? "a limit or a check would not hold" : "what the program allocates is not seen");
    if (stops) hks_report_stop(line);
    hks_report_line(line);
}

/* What the program cannot do without, for it was asked for. */
static void protect(hak_ctx *ctx, const hks_settings *settings)
{
    if (hks_aside()) {
        step_aside(settings, "the program was built with a sanitizer, and has the sanitizer's malloc");
        return;
    }
    if (!ctx) hks_report_stop("there is no memory for the heap");
    if (settings->limit != 0 && hak_limit(ctx, 0, settings->limit, NULL, NULL) != 0)
        hks_report_stop("the limit cannot be set");
    const char *other = hks_aside_other(ctx);
    if (other) {
        char why[HKC_FILE_NAME + 64];
        snprintf(why, sizeof why, "the program has the malloc of %s", other);
        step_aside(settings, why);
        return;
    }
    const char *inside = hks_settings_protect(settings) ? hks_aside_inside() : NULL;
    if (inside) {
        char why[128];
        snprintf(why, sizeof why, "the program has %s inside: what that gives is neither limited nor checked",
                 inside);
        hks_report_line(why);
    }
}

static bool tells(const hks_settings *settings)
{
    return settings->report || hks_settings_finds_misuse(settings) || hks_settings_profile(settings) ||
           *settings->live != '\0' || hks_settings_learn(settings);
}

/* 101: before the constructors of the program. The first allocations are earlier still; they need nothing
 * of this. */
__attribute__((constructor(101))) static void begin(void)
{
    hak_ctx *ctx = hks_heap_shared();
    const hks_settings *settings = hks_settings_get();
    const char *name = *settings->name != '\0' ? settings->name : program_invocation_short_name;
    memcpy(hks_process.name, name, strnlen(name, sizeof hks_process.name - 1));
    protect(ctx, settings);
    if (!ctx) return;
    if (tells(settings)) hks_report_open(settings->file);
    main_process = getpid();
    hks_mapped_begin();
    if (*settings->learn != '\0') hks_report_try("learn", settings->learn);
    if (settings->trim != 0 || hks_settings_learn(settings)) begin_keeper();
    hks_guard_listen();
    hks_profile_try();
    hks_profile_listen();
}

/* The context stays: what runs after this may still allocate and free. */
__attribute__((destructor(101))) static void end(void)
{
    if (hks_aside()) return;
    if (hks_settings_get()->report) hks_report_write();
    hks_profile_end();
    learned();
}

/* Loaded by LD_PRELOAD: puts hakmem in before the first allocation of Python. In a process without a Python,
 * and where the extension module loads this file into a running interpreter, nothing happens. Programs that
 * load Python themselves (frozen ones, plugins) are met when Python asks for the locale, which is the first
 * that it does of what can be seen. */
#define _GNU_SOURCE
#include "base/await.h"
#include "base/cold.h"
#include "base/options.h"
#include "base/process.h"
#include "common/file.h"
#include "common/learn.h"
#include "common/size.h"
#include "heap/heap.h"
#include "hook/copy.h"
#include "hook/deliver.h"
#include "hook/install.h"
#include "hook/live.h"
#include "hook/main_thread.h"
#include "hook/mapped.h"
#include "hook/say.h"
#include "hook/start.h"
#include "paths/providers.h"
#include "paths/reused.h"
#include "profile/profile.h"

#include <dlfcn.h>
#include <link.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static void (*next_exit)(int status);
static char *(*next_setlocale)(int category, const char *locale);
static bool met; /* a Python */
static bool served, all_domains;
static bool anew; /* one ended, and another one may begin */
static bool back; /* hakmem is in again for it */

static void find_next(const char *name, void *function)
{
    void *address = dlsym(RTLD_NEXT, name);
    memcpy(function, &address, sizeof address);
}

static void begin_profile(const char *text, const hkp_profile_options *options)
{
    const char *wrong = hkp_install_profile(options);
    if (wrong) fprintf(stderr, "hakmem: HAKMEM_PROFILE=%.40s: %s; there is no profile\n", text, wrong);
}

static hkc_learning learning;
static char learned_file[HKC_FILE_NAME];

/* The program may change its directory before the file is written. */
static void begin_learning(const char *file, const hkc_memory *memory)
{
    const int error = hkc_file_absolute(file, learned_file);
    if (error) fprintf(stderr, "hakmem: HAKMEM_LEARN: %s: %s; nothing is learned\n", file, strerror(error));
    else if (!hkc_learn_start(&learning, hkp_ctx(), memory, false))
        fputs("hakmem: HAKMEM_LEARN: no memory\n", stderr);
}

static void end_learning(void)
{
    const int error = hkc_learn_finish(&learning, learned_file, -1);
    if (error) hkp_say("hakmem: HAKMEM_LEARN: %s: %s\n", learned_file, strerror(error));
}

static int learn_in_copy(void *unused)
{
    (void)unused;
    learning.process = getpid();
    end_learning();
    return 0;
}

static void remove_learned(void *unused, pid_t copy)
{
    (void)unused;
    hkc_file_remove_part(learned_file, copy);
}

static void leave_learning(void)
{
    if (!learning.learner || learning.process != getpid()) return;
    if (hkp_copy_insist(learn_in_copy, NULL, remove_learned) < 0)
        hkp_say("hakmem: HAKMEM_LEARN: %s is not written: the process ends in the middle of an allocation\n",
                learned_file);
    learning.learner = NULL;
}

static bool install(const char *labels, bool with_limit)
{
    if (hkp_install(all_domains, HKP_REPLACE, labels) == 0) return true;
    hkp_status status;
    hkp_status_get(&status, false);
    hkp_start_without(status.why, with_limit);
    return false;
}

/* What the environment asks for, read as far as the folder base/ can tell and further. A value that is none
 * ends the process, whatever it is: a limit beside it must not be lost, and who mistypes hears of it. */
static void read_options(hkp_options *options, hkp_profile_options *profile)
{
    const char *name = NULL, *value = NULL, *wrong = NULL;
    if (!hkp_options_read(options)) hkp_start_end();
    const hkp_provider *provider = hkp_provider_find(value = options->labels);
    if (!provider) wrong = "off, native or site expected";
    else if (provider->needs_all && !options->all)
        wrong = "this needs all domains (HAKMEM_DOMAINS=all, --all): objects in pymalloc's arenas have no "
                "lines";
    if (wrong) name = "HAKMEM_LABELS";
    if (!wrong && options->profile) {
        name = "HAKMEM_PROFILE";
        wrong = hkp_profile_parse(value = options->profile, profile);
        profile->window_ns = HKC_WINDOW_NS;
    }
    if (!wrong && options->window) {
        name = "HAKMEM_PROFILE_WINDOW";
        wrong = options->profile ? hkc_window_parse(value = options->window, &profile->window_ns)
                                 : (value = options->window, "there is no profile (HAKMEM_PROFILE)");
    }
    if (!wrong && options->reused >= 0) {
        name = "HAKMEM_REUSED";
        value = "on";
        wrong = hkp_reused_wish(options->reused > 0 ? HKP_REUSED_ON : HKP_REUSED_OFF,
                                options->profile || provider->lines);
    }
    if (!wrong) return;
    fprintf(stderr, "hakmem: %s=%.40s: %s; Python is not started\n", name, value, wrong);
    hkp_start_end();
}

static void meet(void)
{
    const char *(*version)(void);
    const hkp_python *python = hkp_python_find();
    if (!python) {
        if (!hkp_function("Py_GetVersion", &version)) return;
        char why[100];
        met = true;
        snprintf(why, sizeof why, "CPython 3.10 and later is served, this is %.*s",
                 (int)strcspn(version(), " \n"), version());
        hkp_start_without(why, hkp_options_limited());
        return;
    }
    met = true;
    if (python->is_initialized()) {
        if (hkp_options_limited())
            fputs("hakmem: HAKMEM_LIMIT holds for nothing: the hook was not preloaded (LD_PRELOAD)\n",
                  stderr);
        return;
    }
    hkp_options options;
    hkp_profile_options profile;
    read_options(&options, &profile);
    hkp_ctx_wish(options.mode, options.policy, options.reserve);
    all_domains = options.all;
    if (!install(options.labels, options.limit > 0)) return;
    const bool maps = options.limit || options.profile || options.report || options.live;
    const uint64_t window_ns = options.profile                  ? profile.window_ns
                               : options.report || options.live ? HKC_WINDOW_NS
                                                                : 0;
    if (maps && !hkp_mapped_begin(window_ns))
        hkp_start_without("there is no memory to count what C code maps", options.limit > 0);
    if (options.profile) begin_profile(options.profile, &profile);
    if (options.limit && hkp_limit(0, options.limit, NULL, NULL) != 0)
        hkp_start_without("the heap takes no limit", true);
    if (options.limit) hkp_start_limited();
    if (options.learn) begin_learning(options.learn, &options.memory);
    if (options.report) hkp_report_plan(options.report, options.first);
    if (options.live) hkp_live_plan(options.live, options.first);
    hkp_await(hkp_first_call);
    hkp_sections_part();
    served = true;
}

static bool is_in(void)
{
    hkp_status status;
    hkp_status_get(&status, false);
    return status.state[HKP_RAW] == HKP_REPLACED;
}

/* CPython 3.12 and later forget the allocators when they begin again, and all forget the first call. A new
 * one asks for the locale after that and before it allocates. Others may ask before it; PYTHONMALLOC acts
 * after it, and is left alone. */
static void meet_again(void)
{
    enum { FORGETS = 0x030c };
    const hkp_python *python = served && !(hkp_awaited && (back || !anew)) ? hkp_python_find() : NULL;
    if (!python || python->is_initialized()) return;
    const bool forgot = !is_in();
    anew = true;
    hak_stats stats = {.size = sizeof stats};
    const bool with_limit = hkp_stats(&stats) == 0 && stats.hard_limit > 0;
    if (!install(hkp_provider_current()->name, with_limit)) return;
    back = forgot || python->version < FORGETS;
    if (!hkp_awaited) hkp_await(hkp_first_call);
}

__attribute__((constructor)) static void at_load(void)
{
    find_next("_exit", &next_exit);
    hkp_say_begin();
    const hkp_python *python = hkp_python_find();
    if (!python || !python->is_initialized()) hkp_process_begin(); /* preloaded: exec was a moment ago */
    meet();
}

HKP_API char *setlocale(int category, const char *locale)
{
    if (!next_setlocale) find_next("setlocale", &next_setlocale);
    if (met) meet_again();
    else meet();
    return next_setlocale(category, locale);
}

static int is_libpython(struct dl_phdr_info *info, size_t size, void *unused)
{
    (void)size, (void)unused;
    return info->dlpi_name && strstr(info->dlpi_name, "/libpython3") != NULL;
}

/* Its symbols are not to be seen by others. */
static void note_stranger(void)
{
    if (!met && !hkp_python_find() && dl_iterate_phdr(is_libpython, NULL) != 0)
        hkp_say("hakmem: this program loads Python for itself alone (RTLD_LOCAL), where hakmem does not get "
                "in%s\n",
                hkp_options_limited() ? ": there was no limit" : "");
}

/* Python came to its end before it had begun. */
static void note_limit(void)
{
    hak_stats s = {.size = sizeof s};
    if (!hkp_awaited || anew || hkp_stats(&s) != 0 || s.failures == 0) return;
    hkp_say("hakmem: Python does not start with a limit of %zu bytes (HAKMEM_LIMIT, --limit)\n",
            s.hard_limit);
}

__attribute__((destructor)) static void at_exit(void)
{
    note_limit();
    note_stranger();
    hkp_live_end();
    if (hkp_report_due) hkp_report_finish();
    end_learning();
}

/* os._exit, which is how the children of multiprocessing end, and how a signal handler ends a process in the
 * middle of an allocation. */
HKP_API __attribute__((noreturn)) void _exit(int status)
{
    hkp_live_leave();
    if (!hkp_report_due || hkp_report_leave()) leave_learning();
    if (next_exit) next_exit(status);
    for (;;)
        syscall(SYS_exit_group, status);
}

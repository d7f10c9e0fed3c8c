#define _GNU_SOURCE
#include "hook/install.h"

#include "heap/heap.h"
#include "heap/original.h"
#include "hook/wrap.h"
#include "native/kinds.h"
#include "paths/process.h"
#include "paths/providers.h"
#include "paths/reused.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
/* What was put in: HKP_DEFAULT, HKP_REPLACED or HKP_WRAPPED. */
static hkp_state put[HKP_DOMAINS];
static bool installed, early, all_domains;
static bool profiled; /* which of the hooks of the provider are in use */
static char why[sizeof((hkp_status *)0)->why];

static const char *const domain_names[] = {"RAW", "MEM", "OBJ", "arenas"};

__attribute__((format(printf, 1, 2))) static int refuse(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(why, sizeof why, format, args);
    va_end(args);
    return -1;
}

static const hkp_hooks *hooks_now(void)
{
    const hkp_provider *provider = hkp_provider_current();
    return profiled ? provider->profiled : provider->hooks;
}

static const hkp_allocator *ours(int domain)
{
    return put[domain] == HKP_WRAPPED ? &hkp_wrappers[domain] : &hooks_now()->domains[domain];
}

/* Ours may come back on top when who covered them goes: with a profile or without, as they were then. */
static bool is_ours(int d, const hkp_allocator *a)
{
    const hkp_provider *provider = hkp_provider_current();
    return a->malloc == provider->hooks->domains[d].malloc ||
           a->malloc == provider->profiled->domains[d].malloc || a->malloc == hkp_wrappers[d].malloc;
}

static bool is_our_arena(const hkp_arena_allocator *a)
{
    const hkp_provider *provider = hkp_provider_current();
    return a->alloc == provider->hooks->arena.alloc || a->alloc == provider->profiled->arena.alloc;
}

/* CPython's own allocators have no ctx and lie in the file of PyObject_Malloc; debug hooks, tracemalloc and
 * memray have a ctx or lie elsewhere. */
static bool is_of_python(const hkp_python *python, const void *ctx, const void *code)
{
    Dl_info info, own;
    void *object_malloc;
    memcpy(&object_malloc, &python->object_malloc, sizeof object_malloc);
    return !ctx && dladdr(code, &info) && dladdr(object_malloc, &own) && info.dli_fbase == own.dli_fbase;
}

static bool builtin(const hkp_python *python, const hkp_allocator *a)
{
    void *code;
    memcpy(&code, &a->malloc, sizeof code);
    return is_of_python(python, a->ctx, code);
}

/* Ours is not on top: does an allocation still come to us? Where there is no memory to try it, it does. */
static hkp_state below(const hkp_python *python, int d, const hkp_allocator *now, bool gil)
{
    if (builtin(python, now) || !gil) return HKP_DISPLACED;
    unsigned calls = hkp_wrap_calls();
    void *p = now->malloc(now->ctx, 1);
    bool by_us = put[d] == HKP_WRAPPED ? hkp_wrap_calls() != calls : !p || hkp_owns(p);
    now->free(now->ctx, p);
    return by_us ? HKP_COVERED : HKP_DISPLACED;
}

/* Python's own is not tried: from 3.15 on it ends a process whose Python has not begun. */
static hkp_state below_arenas(const hkp_python *python, const hkp_arena_allocator *now, bool gil)
{
    enum { ARENA = 1 << 20 };
    void *code;
    memcpy(&code, &now->alloc, sizeof code);
    if (!gil || is_of_python(python, now->ctx, code)) return HKP_DISPLACED;
    void *p = now->alloc(now->ctx, ARENA);
    const bool by_us = !p || hkp_owns(p);
    if (p) now->free(now->ctx, p, ARENA);
    return by_us ? HKP_COVERED : HKP_DISPLACED;
}

/* The first domain with an allocator that is neither built in nor ours nor on top of ours; -1 = none. Who
 * covers RAW, and is what MEM and OBJ have, is no stranger where these are not asked for. */
static int stranger(const hkp_python *python, bool all)
{
    const int last = !all && put[HKP_RAW] ? HKP_RAW : HKP_OBJ;
    for (int d = HKP_RAW; d <= last; d++) {
        hkp_allocator now;
        python->get_allocator(d, &now);
        if (is_ours(d, &now) || builtin(python, &now)) continue;
        if (!put[d] || below(python, d, &now, true) != HKP_COVERED) return d;
    }
    return -1;
}

/* Who covers ours passes on to them: to have it for the original would be a circle. */
static void put_domain(const hkp_python *python, int d, hkp_state state)
{
    hkp_allocator now, next;
    python->get_allocator(d, &now);
    if (!is_ours(d, &now)) {
        if (put[d] && below(python, d, &now, true) == HKP_COVERED) return;
        hkp_original[d] = now;
        put[d] = state;
    }
    next = *ours(d);
    if (now.malloc == next.malloc) return;
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    python->set_allocator(d, &next);
}

static void put_arenas(const hkp_python *python)
{
    hkp_arena_allocator now, next = hooks_now()->arena;
    python->get_arena_allocator(&now);
    if (!is_our_arena(&now)) {
        if (put[HKP_ARENA] && below_arenas(python, &now, true) == HKP_COVERED) return;
        hkp_original_arena = now;
        put[HKP_ARENA] = HKP_REPLACED;
    }
    if (now.alloc == next.alloc) return;
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    python->set_arena_allocator(&next);
}

static int choose_provider(const char *labels, bool all)
{
    if (installed) return 0;
    const hkp_provider *chosen = hkp_provider_find(labels);
    if (!chosen) return refuse("no labels '%s'", labels);
    if (chosen->needs_all && !all)
        return refuse("labels '%s' need all domains (--all, HAKMEM_DOMAINS=all, domains=\"all\"): objects in "
                      "pymalloc's arenas have no lines",
                      labels);
    const char *unable = chosen->start(hkp_ctx());
    if (unable) return refuse("labels '%s': %s", labels, unable);
    hkp_provider_use(chosen);
    hkp_process_use(hooks_now());
    return 0;
}

static int install(const hkp_python *python, bool all, hkp_mode mode, const char *labels)
{
    bool late = python->is_initialized();
    if (!hkp_ctx_for(all)) return refuse("no memory for a context");
    if (choose_provider(labels, all) != 0) return -1;
    why[0] = '\0';
    int other = late ? stranger(python, all) : -1;
    if (other >= 0) {
        refuse(
            "another allocator is active in domain %s (tracemalloc, memray, PYTHONMALLOC=debug or -X dev?); "
            "when it goes, it would free blocks of hakmem by an allocator that does not know them",
            domain_names[other]);
        if (mode == HKP_REPLACE) return -1;
    }
    bool torn = late && python->free_threading && !(installed && (all_domains || !all));
    if (torn && other < 0 && mode != HKP_WRAP) {
        refuse(
            "free-threaded CPython: other threads would take a block from the new allocator and free it by "
            "the old one; `python -m hakmem run` and `env` put hakmem in before there are threads");
        if (mode == HKP_REPLACE) return -1;
    }
    hkp_state state = other >= 0 || torn || mode == HKP_WRAP ? HKP_WRAPPED : HKP_REPLACED;
    put_domain(python, HKP_RAW, state);
    if (all) {
        put_domain(python, HKP_MEM, state);
        if (python->free_threading && state == HKP_REPLACED) {
            refuse("free-threaded CPython: OBJ is wrapped, since its collector finds objects in its own heap "
                   "only");
            put_domain(python, HKP_OBJ, HKP_WRAPPED);
        } else {
            put_domain(python, HKP_OBJ, state);
        }
    } else if (state == HKP_REPLACED) {
        put_arenas(python);
    }
    if (!installed) early = !late;
    all_domains = all_domains || all;
    installed = true;
    return 0;
}

/* Most processes have nothing to follow, and no pages of the code for it. */
void hkp_install_follow(void)
{
    static bool begun;
    hak_profile_info info = {.size = sizeof info};
    if (!hkp_provider_current()->lines && !profiled && !begun) return;
    begun = true;
    const bool runs = hkp_profile_stats(&info) == 0 && info.running;
    hkp_reused_follow(runs, runs && info.mode == HAK_PROFILE_EXACT);
}

void hkp_install_try_kinds(void)
{
    hkp_mixed mixed[HKP_KINDS];
    if (hkp_provider_current()->counts || !all_domains) return;
    hkp_kinds_try();
    const size_t count = hkp_kinds_mixed(mixed);
    if (count == 0) return;
    int n = snprintf(why, sizeof why, "labels do not tell all kinds apart in this interpreter");
    for (size_t i = 0; i < count && n > 0 && (size_t)n < sizeof why; i++)
        n += snprintf(why + n, sizeof why - (size_t)n, "%s %s as %s", i ? "," : "; there count",
                      mixed[i].kind, mixed[i].label);
}

int hkp_install(bool all, hkp_mode mode, const char *labels)
{
    const hkp_python *python = hkp_python_find();
    pthread_mutex_lock(&mutex);
    int result =
        python ? install(python, all, mode, labels) : refuse("no CPython 3.10 or later in this process");
    pthread_mutex_unlock(&mutex);
    if (result == 0 && python->is_initialized()) {
        hkp_install_follow();
        hkp_install_try_kinds();
    }
    return result;
}

/* Where another allocator is on top, ours below it stay, and serve a profile slower. The hooks do not look at
 * `ctx`, so that a thread may come with words of the old ones and of the new. */
static void use_hooks(const hkp_python *python, bool profile)
{
    bool on_top[HKP_DOMAINS] = {false};
    hkp_allocator now;
    hkp_arena_allocator arenas;
    for (int d = HKP_RAW; d <= HKP_OBJ; d++) {
        python->get_allocator(d, &now);
        on_top[d] = put[d] == HKP_REPLACED && is_ours(d, &now);
    }
    python->get_arena_allocator(&arenas);
    on_top[HKP_ARENA] = put[HKP_ARENA] && is_our_arena(&arenas);
    profiled = profile;
    for (int d = HKP_RAW; d <= HKP_OBJ; d++) {
        now = *ours(d);
        if (on_top[d]) python->set_allocator(d, &now);
    }
    arenas = hooks_now()->arena;
    if (on_top[HKP_ARENA]) python->set_arena_allocator(&arenas);
    hkp_process_use(hooks_now());
}

static void use_profiled(bool profile)
{
    const hkp_python *python = hkp_python_find();
    pthread_mutex_lock(&mutex);
    if (python && installed && profiled != profile) use_hooks(python, profile);
    pthread_mutex_unlock(&mutex);
    if (python && installed && python->is_initialized()) hkp_install_follow();
}

const char *hkp_install_profile(const hkp_profile_options *options)
{
    const char *why_not = installed ? hkp_profile_start(options) : "hakmem is not in";
    if (!why_not) use_profiled(true);
    return why_not;
}

int hkp_install_profile_stop(void)
{
    int status = hkp_profile_stop();
    if (status == 0) use_profiled(false);
    return status;
}

int hakmem_python_install(bool all)
{
    return hkp_install(all, HKP_REPLACE, hkp_provider_off.name);
}

static void name_of(const void *code, char *out, size_t size)
{
    Dl_info info;
    if (!dladdr(code, &info)) return;
    const char *slash = strrchr(info.dli_fname, '/');
    snprintf(out, size, "%s%s%s", slash ? slash + 1 : info.dli_fname, info.dli_sname ? ": " : "",
             info.dli_sname ? info.dli_sname : "");
}

void hkp_status_get(hkp_status *status, bool gil)
{
    const hkp_python *python = hkp_python_find();
    *status = (hkp_status){
        .installed = installed, .early = early, .all = all_domains, .labels = hkp_provider_current()->name};
    memcpy(status->why, why, sizeof why);
    if (hkp_malloc_in) status->state[HKP_MALLOC] = HKP_REPLACED;
    if (!python) return;
    for (int d = HKP_RAW; d <= HKP_OBJ; d++) {
        hkp_allocator now;
        python->get_allocator(d, &now);
        if (put[d] && is_ours(d, &now)) {
            status->state[d] = put[d];
            continue;
        }
        if (put[d]) status->state[d] = below(python, d, &now, gil);
        void *code;
        memcpy(&code, &now.malloc, sizeof code);
        name_of(code, status->holder[d], sizeof status->holder[d]);
    }
    if (put[HKP_ARENA]) {
        hkp_arena_allocator now;
        python->get_arena_allocator(&now);
        status->state[HKP_ARENA] = is_our_arena(&now) ? HKP_REPLACED : below_arenas(python, &now, gil);
    }
}

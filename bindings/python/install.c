#define _GNU_SOURCE
#include "install.h"

#include "original.h"
#include "provider.h"
#include "wrap.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdarg.h>
#include <string.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static const hk_py_provider *provider = &hk_py_provider_off;
/* What was put in: HK_PY_DEFAULT, HK_PY_REPLACED or HK_PY_WRAPPED. */
static hk_py_state put[HK_PY_DOMAINS];
static bool installed, early, all_domains;
static char why[sizeof((hk_py_status *)0)->why];

static const char *const domain_names[] = {"RAW", "MEM", "OBJ", "arenas"};

const hk_py_provider *hk_py_provider_current(void)
{
    return provider;
}

__attribute__((format(printf, 1, 2))) static int refuse(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(why, sizeof why, format, args);
    va_end(args);
    return -1;
}

static const hk_py_allocator *ours(int domain)
{
    return put[domain] == HK_PY_WRAPPED ? &hk_py_wrappers[domain] : &provider->hooks->domains[domain];
}

/* CPython's own allocators have no ctx and lie in the file of PyObject_Malloc; debug hooks, tracemalloc and
 * memray have a ctx or lie elsewhere. */
static bool builtin(const hk_py_python *python, const hk_py_allocator *a)
{
    Dl_info info, own;
    void *code, *object_malloc;
    memcpy(&code, &a->malloc, sizeof code);
    memcpy(&object_malloc, &python->object_malloc, sizeof object_malloc);
    return !a->ctx && dladdr(code, &info) && dladdr(object_malloc, &own) && info.dli_fbase == own.dli_fbase;
}

/* The first domain with an allocator that is neither built in nor ours; -1 = none. */
static int stranger(const hk_py_python *python)
{
    for (int d = HK_PY_RAW; d <= HK_PY_OBJ; d++) {
        hk_py_allocator now;
        python->get_allocator(d, &now);
        if (!(put[d] && now.malloc == ours(d)->malloc) && !builtin(python, &now)) return d;
    }
    return -1;
}

static void put_domain(const hk_py_python *python, int d, hk_py_state state)
{
    hk_py_allocator now, next;
    python->get_allocator(d, &now);
    if (put[d] && now.malloc == ours(d)->malloc) return;
    hk_py_original[d] = now;
    put[d] = state;
    next = *ours(d);
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    python->set_allocator(d, &next);
}

static void put_arenas(const hk_py_python *python)
{
    hk_py_arena_allocator now, next = provider->hooks->arena;
    python->get_arena_allocator(&now);
    if (now.alloc == next.alloc) return;
    hk_py_original_arena = now;
    put[HK_PY_ARENA] = HK_PY_REPLACED;
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    python->set_arena_allocator(&next);
}

static int choose_provider(const char *labels)
{
    if (installed) return 0;
    const hk_py_provider *chosen = hk_py_provider_find(labels);
    if (!chosen) return refuse("no labels '%s'", labels);
    const char *unable = chosen->start(hk_py_ctx());
    if (unable) return refuse("labels '%s': %s", labels, unable);
    provider = chosen;
    return 0;
}

static int install(const hk_py_python *python, bool all, hk_py_mode mode, const char *labels)
{
    bool late = python->is_initialized();
    if (!hk_py_ctx_for(all)) return refuse("no memory for a context");
    if (choose_provider(labels) != 0) return -1;
    why[0] = '\0';
    int other = late ? stranger(python) : -1;
    if (other >= 0) {
        refuse(
            "another allocator is active in domain %s (tracemalloc, memray, PYTHONMALLOC=debug or -X dev?); "
            "when it goes, it would free blocks of hakmem by an allocator that does not know them",
            domain_names[other]);
        if (mode == HK_PY_REPLACE) return -1;
    }
    bool torn = late && python->free_threading && !(installed && (all_domains || !all));
    if (torn && other < 0 && mode != HK_PY_WRAP) {
        refuse(
            "free-threaded CPython: other threads would take a block from the new allocator and free it by "
            "the old one; `python -m hakmem run` and `env` put hakmem in before there are threads");
        if (mode == HK_PY_REPLACE) return -1;
    }
    hk_py_state state = other >= 0 || torn || mode == HK_PY_WRAP ? HK_PY_WRAPPED : HK_PY_REPLACED;
    put_domain(python, HK_PY_RAW, state);
    if (all) {
        put_domain(python, HK_PY_MEM, state);
        if (python->free_threading && state == HK_PY_REPLACED) {
            refuse("free-threaded CPython: OBJ is wrapped, since its collector finds objects in its own heap "
                   "only");
            put_domain(python, HK_PY_OBJ, HK_PY_WRAPPED);
        } else {
            put_domain(python, HK_PY_OBJ, state);
        }
    } else if (state == HK_PY_REPLACED) {
        put_arenas(python);
    }
    if (!installed) early = !late;
    all_domains = all_domains || all;
    installed = true;
    return 0;
}

int hk_py_install(bool all, hk_py_mode mode, const char *labels)
{
    const hk_py_python *python = hk_py_python_find();
    pthread_mutex_lock(&mutex);
    int result =
        python ? install(python, all, mode, labels) : refuse("no CPython 3.10 or later in this process");
    pthread_mutex_unlock(&mutex);
    return result;
}

int hakmem_python_install(bool all)
{
    return hk_py_install(all, HK_PY_REPLACE, hk_py_provider_off.name);
}

/* Ours is not on top: does an allocation still come to us? */
static hk_py_state below(const hk_py_python *python, int d, const hk_py_allocator *now, bool gil)
{
    if (builtin(python, now) || !gil) return HK_PY_DISPLACED;
    unsigned calls = hk_py_wrap_calls();
    void *p = now->malloc(now->ctx, 1);
    bool by_us = put[d] == HK_PY_WRAPPED ? hk_py_wrap_calls() != calls : p && hk_py_owns(p);
    now->free(now->ctx, p);
    return by_us ? HK_PY_COVERED : HK_PY_DISPLACED;
}

static void name_of(const void *code, char *out, size_t size)
{
    Dl_info info;
    if (!dladdr(code, &info)) return;
    const char *slash = strrchr(info.dli_fname, '/');
    snprintf(out, size, "%s%s%s", slash ? slash + 1 : info.dli_fname, info.dli_sname ? ": " : "",
             info.dli_sname ? info.dli_sname : "");
}

void hk_py_status_get(hk_py_status *status, bool gil)
{
    const hk_py_python *python = hk_py_python_find();
    *status =
        (hk_py_status){.installed = installed, .early = early, .all = all_domains, .labels = provider->name};
    memcpy(status->why, why, sizeof why);
    if (!python) return;
    for (int d = HK_PY_RAW; d <= HK_PY_OBJ; d++) {
        hk_py_allocator now;
        python->get_allocator(d, &now);
        if (put[d] && now.malloc == ours(d)->malloc) {
            status->state[d] = put[d];
            continue;
        }
        if (put[d]) status->state[d] = below(python, d, &now, gil);
        void *code;
        memcpy(&code, &now.malloc, sizeof code);
        name_of(code, status->holder[d], sizeof status->holder[d]);
    }
    if (put[HK_PY_ARENA]) {
        hk_py_arena_allocator now;
        python->get_arena_allocator(&now);
        bool there = now.alloc == provider->hooks->arena.alloc;
        status->state[HK_PY_ARENA] = there ? HK_PY_REPLACED : HK_PY_DISPLACED;
    }
}

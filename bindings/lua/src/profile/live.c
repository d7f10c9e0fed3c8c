/* A state that is looked at while it runs. Its context is its thread's alone, so another thread may not read
 * it. That thread puts a lua_Alloc of its own in place: the next time that the runtime asks for memory or
 * frees some, the state's own thread writes the report, at a moment when the context is whole, and puts the
 * old one back. Traces and coroutines call it like everything else, and until somebody looks nothing costs.
 */
#define _GNU_SOURCE /* sem_clockwait */
#include "profile/live.h"

#include "alloc.h"
#include "common/live.h"
#include "hakmem/lua.h"
#include "profile/profile.h"
#include "profile/thread.h"
#include "shared.h"

#include <errno.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

enum { PATIENCE_SECONDS = 2 };

static lua_State *state; /* that is looked at; NULL = none */
static bool shared;      /* the state's context is: nobody has to wait for the state's thread */
static pid_t process;    /* that shows it; its forked children have no thread that asks */
/* The word where the runtime has the state's lua_Alloc, before that of its ud; NULL = not known. It is
 * exchanged in one step, and alone: what the state's own thread puts there meanwhile stays. */
static _Atomic(lua_Alloc) *installed;
static hkc_json *writer; /* of the request */
static int written;      /* what came of it */
static atomic_bool wanted, over;
static sem_t done;

static void *alloc_and_report(void *ud, void *ptr, size_t osize, size_t nsize);

bool hkl_live_is_alloc(lua_Alloc f)
{
    return f == alloc_and_report;
}

static bool is_installed(const hkl_state *st)
{
    void *ud;
    return st->main && lua_getallocf(st->main, &ud) == alloc_and_report;
}

/* A host may have put a function of its own around this one, which stays. */
static void put_back(hkl_state *st)
{
    if (is_installed(st)) lua_setallocf(st->main, hkl_alloc_for(st), st);
}

__attribute__((noinline)) static void answer(hkl_state *st)
{
    put_back(st);
    if (!atomic_exchange(&wanted, false) || process != getpid()) return;
    written = hkl_report_json(st->main, writer);
    sem_post(&done);
}

/* The usual one comes last, as a jump: an exact profile wants the registers of the runtime's call. A string
 * of 5.5 that was made while this was installed calls it once more when it is freed, whoever is installed
 * then. */
static void *alloc_and_report(void *ud, void *ptr, size_t osize, size_t nsize)
{
    hkl_state *st = ud;
    if (LUA_VERSION_NUM < 505 || is_installed(st)) answer(st);
    return hkl_alloc_for(st)(st, ptr, osize, nsize);
}

#ifdef HKC_CFI_WALK

static void find_installed(const hkl_state *st)
{
    enum { WORDS = 8 }; /* the longest way to it is 5.1's: behind its table of strings */
    void *ud;
    const lua_Alloc f = lua_getallocf(st->main, &ud);
    installed = NULL;
    if (!hkl_thread_learn()) return;
    uintptr_t *words = (uintptr_t *)hkl_thread_word(st->main, hkl_thread_layout_now.global_at);
    for (int i = 0; i < WORDS && !installed; i++)
        if (words[i] == (uintptr_t)f && words[i + 1] == (uintptr_t)ud) installed = (void *)&words[i];
}

#else

static void find_installed(const hkl_state *st)
{
    (void)st;
}

#endif

/* On any thread. false = it is another function by now. */
static bool replace(lua_Alloc from, lua_Alloc to)
{
    void *ud;
    if (installed) return atomic_compare_exchange_strong(installed, &from, to);
    if (lua_getallocf(state, &ud) != from) return false;
    lua_setallocf(state, to, ud);
    return true;
}

/* What was there before; NULL = a host's is around it. */
static lua_Alloc install(void)
{
    for (;;) {
        void *ud;
        const lua_Alloc usual = lua_getallocf(state, &ud);
        if (!hkl_alloc_has_state(usual)) return NULL;
        if (replace(usual, alloc_and_report)) return usual;
    }
}

/* By a clock that nobody sets, where the C library has a function for that. */
#ifdef __GLIBC_PREREQ
#if __GLIBC_PREREQ(2, 30)
#define PATIENCE_CLOCK CLOCK_MONOTONIC
#endif
#endif
#ifdef PATIENCE_CLOCK
static int wait_until(const struct timespec *end)
{
    return sem_clockwait(&done, PATIENCE_CLOCK, end);
}
#else
#define PATIENCE_CLOCK CLOCK_REALTIME
static int wait_until(const struct timespec *end)
{
    return sem_timedwait(&done, end);
}
#endif

/* On the thread of the socket. The writer's sink is memory, so that the state's thread does not wait. */
static int report(void *unused, hkc_json *w)
{
    struct timespec end;
    int failed;
    (void)unused;
    if (shared) return hkl_report_json(state, w);
    clock_gettime(PATIENCE_CLOCK, &end);
    end.tv_sec += PATIENCE_SECONDS;
    writer = w;
    atomic_store(&wanted, true);
    const lua_Alloc usual = install();
    do
        failed = usual ? wait_until(&end) : -1;
    while (usual && failed && errno == EINTR);
    if (failed && atomic_exchange(&wanted, false)) { /* nothing asked for memory */
        if (usual) replace(alloc_and_report, usual);
        return usual ? ETIMEDOUT : ENOENT;
    }
    while (failed && (failed = sem_wait(&done)) != 0) {
    }
    return atomic_load(&over) ? ESRCH : written;
}

int hak_lua_live_start(lua_State *L, const char *place, char *error, size_t error_size)
{
    static const hkc_live_options base = {.report = report};
    hkc_live_options options = base;
    char why[HKC_LIVE_ERROR] = "the state is not hakmem's";
    hkl_state *st = hkl_state_attach(L);
    options.place = place;
    if (st && !hkl_is_first(st, L)) {
        snprintf(why, sizeof why,
                 "the state was made with the lua_Alloc of another, which alone can be shown");
        st = NULL;
    }
    bool ok = !state && st;
    if (state) snprintf(why, sizeof why, "another state is looked at");
    if (ok) {
        state = st->main;
        shared = st->shared;
        sem_init(&done, 0, 0);
        process = getpid();
        find_installed(st); /* learns: not in the middle of an allocation */
        ok = hkc_live_begin(&options, why);
        if (!ok) state = NULL;
    }
    if (!ok) snprintf(error, error_size, "%s", why);
    return ok ? 0 : -1;
}

/* All threads of a state have one registry. */
static bool is_looked_at(lua_State *L)
{
    return state && lua_topointer(L, LUA_REGISTRYINDEX) == lua_topointer(state, LUA_REGISTRYINDEX);
}

void hak_lua_live_stop(lua_State *L)
{
    void *ud;
    if (atomic_load(&over) || !is_looked_at(L)) return;
    atomic_store(&over, true);
    if (atomic_exchange(&wanted, false)) sem_post(&done);
    hkc_live_end();
    if (lua_getallocf(L, &ud) == alloc_and_report) put_back(ud);
}

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

#include <errno.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>

enum { PATIENCE_SECONDS = 2 };

static lua_State *state; /* that is looked at; NULL = none */
static hkc_json *writer; /* of the request */
static int written;      /* what came of it */
static atomic_bool wanted, over;
static sem_t done;

/* Comes last, as a jump: an exact profile wants the registers of the runtime's call. */
static void *alloc_and_report(void *ud, void *ptr, size_t osize, size_t nsize)
{
    hkl_state *st = ud;
    const lua_Alloc alloc = hkl_alloc_for(st);
    lua_setallocf(st->main, alloc, st);
    if (atomic_exchange(&wanted, false)) {
        written = hkl_report_json(st->main, writer);
        sem_post(&done);
    }
    return alloc(st, ptr, osize, nsize);
}

bool hkl_live_is_alloc(lua_Alloc f)
{
    return f == alloc_and_report;
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
    hkl_state *st = hkl_state_of(state);
    struct timespec end;
    (void)unused;
    if (!st) return ENOENT;
    clock_gettime(PATIENCE_CLOCK, &end);
    end.tv_sec += PATIENCE_SECONDS;
    writer = w;
    atomic_store(&wanted, true);
    lua_setallocf(state, alloc_and_report, st);
    int failed;
    do
        failed = wait_until(&end);
    while (failed && errno == EINTR);
    if (!failed) return atomic_load(&over) ? ESRCH : written;
    if (atomic_exchange(&wanted, false)) return ETIMEDOUT; /* nothing asked for memory */
    while (sem_wait(&done) != 0) {
    }
    return written;
}

int hak_lua_live_start(lua_State *L, const char *place, char *error, size_t error_size)
{
    static const hkc_live_options base = {.report = report};
    hkc_live_options options = base;
    char why[HKC_LIVE_ERROR] = "the state is not hakmem's";
    hkl_state *st = hkl_state_attach(L);
    options.place = place;
    bool ok = !state && st;
    if (state) snprintf(why, sizeof why, "another state is looked at");
    if (ok) {
        state = st->main;
        sem_init(&done, 0, 0);
        hkl_thread_learn(); /* not in the middle of an allocation */
        ok = hkc_live_begin(&options, why);
        if (!ok) state = NULL;
    }
    if (!ok) snprintf(error, error_size, "%s", why);
    return ok ? 0 : -1;
}

void hak_lua_live_stop(lua_State *L)
{
    const hkl_state *st = hkl_state_of(L);
    if (!state || !st || st->main != state) return;
    atomic_store(&over, true);
    if (atomic_exchange(&wanted, false)) sem_post(&done);
    hkc_live_end();
    if (hkl_state_of(L)) lua_setallocf(L, hkl_alloc_for(st), (void *)(uintptr_t)st);
}

/* What happens where the context refuses a block.
 *
 * LuaJIT writes the message of the error at L->top, which its fast functions (tostring, string.sub,
 * string.upper ...) do not set when the interpreter calls them: it may still be what a function further down
 * has left, and then the message takes the place of a caller's local. So the top goes up to the base first,
 * which is above the locals of all callers. PUC Lua has no top below the base. */
#include "alloc.h"
#include "close.h"
#include "leave.h"
#include "setmode.h"
#include "state.h"

#include "profile/profile.h"
#include "profile/trace.h"

#if LUA_VERSION_NUM == 501

enum { FLUSH_ENGINE = 0x0200, SLAB = 80 << 10 /* units of the largest slab, and one for its data */ };

/* Where a trace that follows another one is recorded meanwhile, LuaJIT still writes to that other one when the recording
 * ends, and crashes if it was flushed. Setting the hook again ends the recording before the hook runs again. */
static void flush_traces(lua_State *L, lua_Debug *ar)
{
    hkl_state *st = hkl_state_of(L);
    (void)ar;
    if (hkl_trace_now(L) == HKL_TRACE_RECORDED) {
        lua_sethook(L, flush_traces, LUA_MASKCOUNT, 1);
        return;
    }
    lua_sethook(L, NULL, 0, 0);
    hkl_trace_forbid(L, false);
    luaJIT_setmode(L, 0, FLUSH_ENGINE);
    if (!st) return;
    hkl_trace_events_on(L, st->events);
    st->events = 0;
}

static void collect(lua_State *L, lua_Debug *ar)
{
    (void)ar;
    lua_sethook(L, NULL, 0, 0);
    hkl_trace_forbid(L, false);
    if (hkl_leave_gc_at != 0) hkl_leave_collect(L, LUA_GCCOLLECT);
    else lua_gc(L, LUA_GCCOLLECT, 0);
}

/* The step that was left to interpreted code. */
static void finalize(lua_State *L, lua_Debug *ar)
{
    (void)ar;
    lua_sethook(L, NULL, 0, 0);
    hkl_trace_forbid(L, false);
    hkl_leave_collect(L, LUA_GCSTEP);
}

/* A hook of the program or of the host, which stays. */
static bool is_hooked(lua_State *L)
{
    const lua_Hook hook = lua_gethook(L);
    return hook && hook != flush_traces && hook != collect && hook != finalize;
}

/* A trace is left as if a finalizer ran, which keeps LuaJIT from running others there. The hook takes that back at
 * the first instruction that is interpreted, and takes the step. The hook of a program stays, and then nothing is
 * done. */
void hkl_leave(hkl_state *st, size_t bytes)
{
    lua_State *L = st->main;
    if (!hkl_leave_is_near(L, bytes) || is_hooked(L)) return;
    if (!lua_gethook(L)) lua_sethook(L, finalize, LUA_MASKCOUNT, 1);
    const hkl_trace_where where = hkl_trace_now(L);
    if (hkl_trace_finalizes(L) || (where != HKL_TRACE_ELSEWHERE && where != HKL_TRACE_IN_C)) return;
    hkl_trace_forbid(L, true);
    st->forbids = true;
}

void hkl_events_back(hkl_state *st)
{
    const lua_Hook hook = lua_gethook(st->main);
    if (st->forbids && hook != collect && hook != finalize) {
        if (!hkl_trace_finalizes(st->main)) hkl_trace_forbid(st->main, false);
        st->forbids = false;
    }
    if (st->events == 0 || lua_gethook(st->main) == flush_traces) return;
    hkl_trace_events_on(st->main, st->events);
    st->events = 0;
}

/* Compiled code keeps alive the functions that were called in it, with their upvalues: after the error, these
 * may be all that fills the memory. It can go where none of it runs: at the next instruction that is
 * interpreted. Until then no handler of jit.attach is called, such as a profile's: where recording ends for
 * want of memory, LuaJIT would look for a function in Lua for it below frames that have none, and crash. */
static void flush_traces_soon(hkl_state *st)
{
    lua_State *L = st->main;
    hkl_events_back(st);
    if (!luaJIT_setmode || is_hooked(L)) return;
    st->events |= hkl_trace_events_off(L);
    lua_sethook(L, flush_traces, LUA_MASKCOUNT, 1);
}

/* Flushes traces as jit.flush() in this place would do, but tells no handler of jit.attach: this is the
 * middle of an allocation. Older LuaJITs crash where they go on to record what follows a trace that was
 * flushed, so no trace is begun until the hook has run. */
static void flush_now(hkl_state *st)
{
    lua_State *L = st->main;
    /* in a finalizer LuaJIT would raise an error, and a handler is called by the recorder; hkl_leave only says
     * that a finalizer ran */
    const bool said = st->forbids && hkl_trace_goes_on(L) == HKL_TRACE_FINALIZES;
    if (hkl_trace_layout_now.hooks_at == 0 || (hkl_trace_goes_on(L) != 0 && !said)) return;
    hkl_trace_forbid(L, false);
    const uint8_t events = hkl_trace_events_off(L);
    luaJIT_setmode(L, 0, FLUSH_ENGINE);
    hkl_trace_events_on(L, events);
    hkl_trace_forbid(L, true);
    st->forbids = true;
}

/* Where a trace ends in the call of a function in C, the next trace may follow without an instruction that is
 * interpreted between them. So traces are flushed in such a function. A step that is left to interpreted code waits
 * for the same instruction, and the collection takes its place. */
bool hkl_collect_soon(hkl_state *st)
{
    const lua_Hook hook = lua_gethook(st->main);
    const hkl_trace_where where = hkl_trace_now(st->main);
    if (!luaJIT_setmode || (hook && hook != collect && hook != finalize)) return true;
    if (hook != collect) {
        /* lua_sethook ends the recording, but the recorder has not heard of that: it needs its traces still
         */
        st->recorded = where == HKL_TRACE_RECORDED;
        lua_sethook(st->main, collect, LUA_MASKCOUNT, 1);
    }
    if (where == HKL_TRACE_IN_C && !st->recorded) flush_now(st);
    return st->recorded || where != HKL_TRACE_ELSEWHERE;
}

bool hkl_collects_soon(const hkl_state *st)
{
    return lua_gethook(st->main) == collect;
}

/* Takes the place of the state's function for one call: the old table of strings goes. */
static void *alloc_beyond(void *ud, void *ptr, size_t osize, size_t nsize)
{
    hkl_state *st = ud;
    const lua_Alloc usual = hkl_alloc_for(st);
    lua_setallocf(st->main, usual, st);
    void *p = usual(st, ptr, osize, nsize);
    hak_ctx_trim(st->ctx);
    return p;
}

/* All that LuaJIT's collector ever asks for is a table of strings of half the size, and its next call frees
 * the old one. It may do so while compiled code is being left, where an error finds no frame and ends the
 * process. So this block comes from the reserve, or else from beyond the limit, by a slab more than its size
 * at most. */
static void *collector_block(hkl_state *st, size_t nsize, hak_label label, hak_site site)
{
    hkl_reserve_free(st);
    void *p = hak_alloc_cs(st->ctx, nsize, label, site), *user;
    hak_stats s = {.size = sizeof s};
    if (p || hkl_state_of(st->main) != st || hak_ctx_stats(st->ctx, &s) != 0) return p;
    if (st->hard == 0 || s.hard_limit != st->hard) return NULL; /* it is the host's */
    const size_t now = s.committed_bytes > st->hard ? s.committed_bytes : st->hard;
    hak_pressure_fn *const fn = hak_limit_callback(st->ctx, &user); /* the host's, perhaps */
    hak_limit(st->ctx, 0, now + nsize + SLAB, NULL, NULL);
    p = hak_alloc_cs(st->ctx, nsize, label, site);
    hak_limit(st->ctx, s.soft_limit, s.hard_limit, fn, user);
    if (p) lua_setallocf(st->main, alloc_beyond, st);
    return p;
}

/* Index 0 is the slot at the top, if LuaJIT was not built with LUA_USE_APICHECK: each push copies it to
 * itself. Nothing grows below the base. */
void *hkl_refused(hkl_state *st, void *ptr, size_t osize, size_t nsize, hak_label label, hak_site site)
{
    if (!st->main) return NULL; /* it is being made */
    void *p = hkl_close_block(st, ptr, osize, nsize, label, site);
    if (p) return p;
    if ((!ptr || hkl_is_foreign(st, ptr)) && st->soft != 0 && hkl_trace_collects(st->main))
        return collector_block(st, nsize, label, site);
    hkl_reserve_free(st);
    flush_traces_soon(st);
    if (st->soft != 0 && hkl_trace_to_base(st->main)) return NULL; /* LuaJIT sets the top there */
    for (int n = lua_gettop(st->main); n < 0; n++)
        lua_pushvalue(st->main, 0);
    return NULL;
}

#else

void *hkl_refused(hkl_state *st, void *ptr, size_t osize, size_t nsize, hak_label label, hak_site site)
{
    return st->main ? hkl_close_block(st, ptr, osize, nsize, label, site) : NULL;
}

#endif

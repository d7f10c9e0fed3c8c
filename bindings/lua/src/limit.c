/* Limits. A collector that runs by itself when an allocation fails is in 5.2 and later; elsewhere it
 * is made to run in time, from inside the allocator: there, lua_gc may do nothing but set variables. */
#include "alloc.h"
#include "close.h"
#include "hakmem/lua.h"
#include "label.h"
#include "leave.h"
#include "profile/profile.h"
#include "profile/trace.h"
#include "state.h"

#define SOFT_PERCENT 70
/* LuaJIT and 5.1: work per byte allocated, so that a cycle ends before the hard limit is reached. */
#define HURRIED_STEPMUL 5000
/* Growth between two looks, as a part of the hard limit. */
#define LOOK_PART 64
#define LOOK_LEAST 1024

static int64_t look_distance(const hkl_state *st)
{
    size_t d = (st->hard != 0 ? st->hard : st->soft) / LOOK_PART;
    if (d > (size_t)INT64_MAX) d = (size_t)INT64_MAX;
    if (hkl_profile_turns(st) && d > HKL_PROFILE_TURN_BYTES) return HKL_PROFILE_TURN_BYTES;
    return d < LOOK_LEAST ? LOOK_LEAST : (int64_t)d;
}

#if LUA_VERSION_NUM == 501

/* LuaJIT and 5.1 do not collect when they are refused: the garbage is still there when pcall returns, and
 * even the call of collectgarbage() may need a larger stack. So a part of the limit is kept back for what
 * handles the error. */
static size_t reserve_for(size_t hard)
{
    enum { UNIT = 16 << 10, PART = 32, MOST = 64 << 10 };
    size_t n = hard / PART;
    return n < MOST ? n / UNIT * UNIT : MOST;
}

/* Only where twice as much is free beside it: what was given up a moment ago is for the program. */
static void keep_reserve(hkl_state *st, size_t committed)
{
    if (st->reserve || st->reserve_size == 0) return;
    if (committed >= st->hard || st->hard - committed < 3 * st->reserve_size) return;
    const hak_label own = st->labels ? hkl_labels_registry(st->labels) : 0;
    st->reserve = hak_alloc_cs(st->ctx, st->reserve_size, own, 0);
}

#else

static size_t reserve_for(size_t hard)
{
    (void)hard;
    return 0;
}

static void keep_reserve(hkl_state *st, size_t committed)
{
    (void)st;
    (void)committed;
}

#endif

/* Free blocks in slabs can serve the next allocation, or not, if they are of other sizes: half counts. */
static bool is_short(const hkl_state *st, const hak_stats *s)
{
    return s->committed_bytes - s->cached_bytes / 2 >= st->soft;
}

/* From 5.2 on a stopped collector runs when an allocation fails, or, in 5.2, is stopped for good: only a soft limit
 * that somebody asked for starts one. */
static bool is_stopped(const hkl_state *st)
{
#if LUA_VERSION_NUM == 501
    (void)st;
    return false;
#else
    return !st->restarts && lua_gc(st->main, LUA_GCISRUNNING, 0) != 1;
#endif
}

static void hurry(hkl_state *st)
{
    if (is_stopped(st)) return;
#if LUA_VERSION_NUM == 501
    int before = lua_gc(st->main, LUA_GCSETSTEPMUL, HURRIED_STEPMUL);
    if (!st->hurried || before != HURRIED_STEPMUL) st->stepmul = before; /* or set by the program since */
#endif
    st->hurried = true;
    lua_gc(st->main, LUA_GCRESTART, 0);
}

static void relax(hkl_state *st)
{
    if (!st->hurried) return;
    st->hurried = false;
#if LUA_VERSION_NUM == 501
    const int now = lua_gc(st->main, LUA_GCSETSTEPMUL, st->stepmul);
    if (now != HURRIED_STEPMUL) lua_gc(st->main, LUA_GCSETSTEPMUL, now); /* set by the program since */
#endif
}

/* Older LuaJITs have functions that allocate and give the collector no turn, such as those of string.buffer:
 * a program that calls nothing else fills the memory with garbage. A hurried collector frees something
 * sooner. Where all is in use, a full collection finds that out, a few times until the memory is full. */
static void collect_if_idle(hkl_state *st, const hak_stats *s, int64_t grown)
{
    const size_t room = st->hard > st->soft ? st->hard - st->soft : st->soft;
    const int64_t more = (int64_t)(s->live_bytes - st->live_seen);
    st->live_seen = s->live_bytes;
    st->idle = more >= grown - grown / 8 ? st->idle + (size_t)grown : 0;
    const bool again = st->collects && hkl_collects_soon(st);
    st->collects = false;
    if (st->idle < room / 4 && !again) return;
    st->idle = 0;
    st->collects = !hkl_collect_soon(st);
    if (st->collects) st->until_check = 0;
}

void hkl_check_pressure(hkl_state *st)
{
    const bool turns = hkl_profile_turns(st);
    if (turns) hak_profile_turn(st->ctx);
    if (st->soft == 0) {
        st->until_check = turns ? HKL_PROFILE_TURN_BYTES : INT64_MAX;
        return;
    }
    hkl_events_back(st);
    const int64_t grown = look_distance(st) - st->until_check;
    st->until_check = look_distance(st);
    if (hkl_finalizes(st)) return;
    hak_stats s = {.size = sizeof s};
    hak_ctx_stats(st->ctx, &s);
    keep_reserve(st, s.committed_bytes);
    if (is_short(st, &s)) {
        hurry(st);
        collect_if_idle(st, &s, grown);
    } else {
        relax(st);
        st->idle = 0;
        st->collects = false;
        st->live_seen = s.live_bytes;
    }
}

int hak_lua_limit(lua_State *L, size_t soft, size_t hard)
{
    hak_ctx *ctx = hak_lua_context(L);
    if (!ctx || (hard != 0 && soft > hard)) return -1;
    hkl_state *st = hkl_state_of(L);
    const bool hurries = hak_ctx_thread(ctx) == ctx && !(st && st->ended);
    if (!hurries) return soft != 0 ? -1 : hak_limit(ctx, 0, hard, NULL, NULL);
    const bool given = soft != 0;
    if (!given) soft = hard - hard / 100 * (100 - SOFT_PERCENT); /* not 0, however small */
#if LUA_VERSION_NUM == 501
    if (soft != 0) hkl_trace_learn();
    if (soft != 0) hkl_leave_learn();
#endif
    const bool limited = soft != 0 || hard != 0;
    if (limited) hkl_close_learn();
    if (limited && !(st = hkl_state_attach(L))) return -1;
#if LUA_VERSION_NUM == 501
    if (soft != 0 && !hkl_leave_prepare(st->main)) return -1;
#endif
    if (hak_limit(ctx, soft, hard, NULL, NULL) != 0) return -1;
    if (st) {
        relax(st);
        hkl_events_back(st);
        hkl_reserve_free(st);
        st->soft = soft;
        st->hard = hard;
        st->restarts = given || LUA_VERSION_NUM == 501;
        st->closing = false;
        st->leaves = soft != 0 && hkl_leave_gc_at != 0;
        st->reserve_size = reserve_for(hard);
        st->until_check = 0; /* the first look says when to look again */
        hkl_install(st, L);
    }
    return 0;
}

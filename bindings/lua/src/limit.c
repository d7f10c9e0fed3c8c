/* Limits. A collector that runs by itself when an allocation fails is in 5.3 and 5.4 only; elsewhere it
 * is made to run in time, from inside the allocator: there, lua_gc may do nothing but set variables. */
#include "alloc.h"
#include "hakmem/lua.h"
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
    return d < LOOK_LEAST ? LOOK_LEAST : (int64_t)d;
}

/* Free blocks in slabs can serve the next allocation, or not, if they are of other sizes: half counts. */
static bool is_short(const hkl_state *st)
{
    hak_stats s = {.size = sizeof s};
    hak_ctx_stats(st->ctx, &s);
    return s.committed_bytes - s.cached_bytes / 2 >= st->soft;
}

static void hurry(hkl_state *st)
{
#if LUA_VERSION_NUM == 501
    int before = lua_gc(st->main, LUA_GCSETSTEPMUL, HURRIED_STEPMUL);
    if (!st->hurried) st->stepmul = before;
#endif
    st->hurried = true;
    lua_gc(st->main, LUA_GCRESTART, 0);
}

static void relax(hkl_state *st)
{
    if (!st->hurried) return;
    st->hurried = false;
#if LUA_VERSION_NUM == 501
    lua_gc(st->main, LUA_GCSETSTEPMUL, st->stepmul);
#endif
}

void hkl_check_pressure(hkl_state *st)
{
    if (st->soft == 0) {
        st->until_check = INT64_MAX;
        return;
    }
    st->until_check = look_distance(st);
    if (is_short(st)) hurry(st);
    else relax(st);
}

int hak_lua_limit(lua_State *L, size_t soft, size_t hard)
{
    hak_ctx *ctx = hak_lua_context(L);
    if (!ctx || (hard != 0 && soft > hard)) return -1;
#if LUA_VERSION_NUM == 501
    if (soft == 0) soft = hard / 100 * SOFT_PERCENT;
#endif
    hkl_state *st = soft != 0 ? hkl_state_attach(L) : hkl_state_of(L);
    if (soft != 0 && !st) return -1;
    if (hak_limit(ctx, soft, hard, NULL, NULL) != 0) return -1;
    if (st) {
        relax(st);
        st->soft = soft;
        st->hard = hard;
        st->until_check = soft != 0 ? look_distance(st) : INT64_MAX;
        lua_setallocf(L, hkl_alloc_for(st), st);
    }
    return 0;
}

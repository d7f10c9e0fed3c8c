#include "profile/learn.h"

#include "state.h"

#include <lauxlib.h>
#include <lualib.h>

/* A chunk and a table that make vectors of all kinds grow. */
static const char growing[] =
    "local t = {} for i = 1, 40 do t[i] = {i} t['k' .. i] = function() return i end end "
    "local s = 'return 0'\nfor i = 1, 60 do s = s .. ' + ' .. i * 1.5 end "
    "local f = (loadstring or load)(s)\n"
    "local function deep(n) if n > 0 then return 1 + deep(n - 1) end return 0 end "
    "local d = deep(100)\n"
    "local big = table.concat({1, 2, 3}, ('x'):rep(3000))\n"
    "return big:gsub('x', '%0%0') .. s:gsub('%d', '%0%0') .. big:format()";

static hkl_learner *learner_of(lua_State *L)
{
    lua_getfield(L, LUA_REGISTRYINDEX, "hakmem.learner");
    hkl_learner *learner = lua_touserdata(L, -1);
    lua_pop(L, 1);
    return learner;
}

static void allocate(lua_State *L)
{
    char text[300] = "";
    const int top = lua_gettop(L);
    lua_newtable(L);
    for (int i = 1; i <= 60; i++) {
        lua_pushinteger(L, i);
        lua_rawseti(L, -2, i);
    }
    lua_createtable(L, 7, 60);
    for (int i = 0; i < 8; i++) {
        text[0] = (char)('a' + i);
        lua_pushlstring(L, text, sizeof text);
    }
    lua_concat(L, 8);
    lua_newuserdata(L, 200);
    lua_pushvalue(L, -1);
    lua_pushcclosure(L, hkl_learn_run, 2);
    lua_newthread(L);
    lua_checkstack(L, 3000);
    if (luaL_loadstring(L, growing) == 0) lua_pcall(L, 0, 1, 0);
    lua_settop(L, top);
}

/* The runtime of 5.2 and later collects, and tries again from another place; 5.2 not while its collector is
 * stopped. */
static void allocate_refused(lua_State *L, hkl_learner *learner)
{
    const int top = lua_gettop(L);
    for (int i = 0; i < 2; i++) {
        if (LUA_VERSION_NUM == 502) lua_gc(L, LUA_GCRESTART, 0);
        learner->refuse = true;
        if (i == 0) lua_newuserdata(L, 5000);
        else lua_checkstack(L, 5000);
        learner->refuse = false;
        if (LUA_VERSION_NUM == 502) lua_gc(L, LUA_GCSTOP, 0);
    }
    lua_settop(L, top);
}

static int exercise(lua_State *L)
{
    hkl_learner *learner = learner_of(L);
    if (learner->stepping && learner->exercised++ > 2) return 0; /* slow under the hook, and seen */
    lua_State *before = learner->running;
    learner->running = L;
    allocate(L);
#if LUA_VERSION_NUM >= 502
    allocate_refused(L, learner);
#else
    (void)allocate_refused;
#endif
    learner->running = before;
    return 0;
}

static void no_hook(lua_State *L, lua_Debug *ar)
{
    (void)L;
    (void)ar;
}

/* Instructions that allocate, at many places and lines, among functions in C that allocate in the same ways.
 */
static int step(lua_State *L)
{
    static const char stepped[] =
        "local allocate = ... if jit then jit.off() jit.flush() end "
        "local function f(n, ...) "
        "  local a = {}\nlocal b = {1, 2, 3, 4, 5}\nlocal c = {x = 1, y = 2}\nallocate() "
        "  local d = {a, b, c, x = d}\nlocal e = {...}\nlocal g = {n > 0 and f(n - 1, ...)}\n"
        "  local h = function() return a end\nlocal i = 'a' .. #b .. 'b'\n"
        "  local j = {{}, {{}}, x = {}}\nfor m = 1, 20 do a[m] = {m} c['k' .. m] = m end "
        "  local k = {" /* more than an instruction sets at once */
        "1,2,3,4,5,6,7,8,9,10,1,2,3,4,5,6,7,8,9,10,1,2,3,4,5,6,7,8,9,10,1,2,3,4,5,6,7,8,9,10,1,2,3,4,5,6,7,8,"
        "9,10,"
        "1,2,3,4,5,6,7,8,9,10,1,2,3,4,5,6,7,8,9,10,1,2,3,4,5,6,7,8,9,10,1,2,3,4,5,6,7,8,9,10,1,2,3,4,5,6,7,8,"
        "9,10} "
        "  allocate() return a, b, c "
        "end "
        "for n = 1, 3 do f(n, 1, 2, 3) end";
    hkl_learner *learner = learner_of(L);
    if (luaL_loadstring(L, stepped) != 0) return lua_error(L);
    lua_pushcfunction(L, exercise);
    learner->running = L;
    learner->stepping = true;
    if (learner->hooks) lua_sethook(L, no_hook, LUA_MASKCOUNT, 1);
    const int failed = lua_pcall(L, 1, 0, 0);
    lua_sethook(L, NULL, 0, 0);
    learner->stepping = false;
    learner->running = NULL;
    return failed ? lua_error(L) : 0;
}

int hkl_learn_run(lua_State *L)
{
    static const char nested[] =
        "local run = ... "
        "local function body() run() end "
        "local function inner() run() coroutine.wrap(body)() end "
        "run() coroutine.wrap(inner)() coroutine.wrap(inner)() "
        "local co = coroutine.create(function() coroutine.yield() inner() end) "
        "coroutine.resume(co) coroutine.resume(co) "
        "pcall(function() table.sort({3, 2, 1}, function(a, b) run() return a < b end) end)";
    hkl_learner *learner = lua_touserdata(L, 1);
    hkl_collector_off(L); /* it moves the stacks of other threads, in their names */
    lua_pushlightuserdata(L, learner);
    lua_setfield(L, LUA_REGISTRYINDEX, "hakmem.learner");
    if (luaL_loadstring(L, nested) != 0) return lua_error(L);
    lua_pushcfunction(L, exercise);
    lua_call(L, 1, 0);
    lua_pushcfunction(L, step);
    lua_call(L, 0, 0);
    return 0;
}

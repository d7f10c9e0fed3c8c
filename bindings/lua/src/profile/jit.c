#include "profile/jit.h"

#include "profile/profile.h"

#include <lauxlib.h>

#if LUA_VERSION_NUM == 501

#define LEAVE "hakmem.profile.leave"

/* note(trace, function, line) */
static int note(lua_State *L)
{
    lua_Debug ar;
    const hkl_state *st = hkl_state_of(L);
    const int32_t number = (int32_t)luaL_checkinteger(L, 1);
    const int line = (int)luaL_checkinteger(L, 3);
    luaL_checktype(L, 2, LUA_TFUNCTION);
    lua_settop(L, 2);
    if (!st || !st->profile || !lua_getinfo(L, ">S", &ar)) return 0;
    const hak_lua_frame begins = {.kind = HAK_LUA_FRAME_TRACE,
                                  .source = *ar.source == '@' || *ar.source == '=' ? ar.source : ar.short_src,
                                  .function = "",
                                  .line = line > 0 ? line : ar.linedefined,
                                  .defined = ar.linedefined};
    hkl_traces_note(&st->profile->traces, st->profile->frames, number, &begins);
    return 0;
}

static int forget(lua_State *L)
{
    const hkl_state *st = hkl_state_of(L);
    if (st && st->profile) hkl_traces_forget(&st->profile->traces);
    return 0;
}

/* There is one handler a kind of event; `events` holds them. */
static const char listen[] =
    "local note, forget, events = ... "
    "local jit, info = require('jit'), require('jit.util').funcinfo "
    "local before, other = {}, nil "
    "for key, handler in pairs(events or {}) do before[key] = handler end "
    "local function see(what, number, func, pc) "
    "  if what == 'start' then note(number, func, info(func, pc).currentline or 0) "
    "  elseif what == 'flush' then forget() end "
    "end "
    /* Where memory is short LuaJIT would say on standard error that the handler failed. */
    "local function on_trace(...) "
    "  pcall(see, ...) "
    "  if other then other(...) end "
    "end "
    "jit.attach(on_trace, 'trace') "
    "events = debug.getregistry()._VMEVENTS or {} "
    "for key, handler in pairs(events) do if handler == on_trace then other = before[key] end end "
    "return function() "
    "  for _, handler in pairs(events) do "
    "    if handler == on_trace then jit.attach(on_trace) if other then jit.attach(other, 'trace') end "
    "return end "
    "  end "
    "end";

static int attach(lua_State *L)
{
    if (luaL_loadbuffer(L, listen, sizeof listen - 1, "=hakmem") != 0) return lua_error(L);
    lua_pushcfunction(L, note);
    lua_pushcfunction(L, forget);
    lua_getfield(L, LUA_REGISTRYINDEX, "_VMEVENTS");
    lua_call(L, 3, 1);
    lua_setfield(L, LUA_REGISTRYINDEX, LEAVE);
    return 0;
}

static int detach(lua_State *L)
{
    lua_getfield(L, LUA_REGISTRYINDEX, LEAVE);
    if (lua_isfunction(L, -1)) lua_call(L, 0, 0);
    lua_pushnil(L);
    lua_setfield(L, LUA_REGISTRYINDEX, LEAVE);
    return 0;
}

/* Even a name may be refused memory, and the caller need not run in a pcall. */
static void run_protected(lua_State *L, lua_CFunction function)
{
    const int top = lua_gettop(L);
    if (!lua_checkstack(L, 8)) return;
    lua_cpcall(L, function, NULL);
    lua_settop(L, top);
}

void hkl_jit_listen(lua_State *L)
{
    if (hkl_thread_luajit()) run_protected(L, attach);
}

void hkl_jit_leave(lua_State *L)
{
    run_protected(L, detach);
}

#else

void hkl_jit_listen(lua_State *L)
{
    (void)L;
}

void hkl_jit_leave(lua_State *L)
{
    (void)L;
}

#endif

/* LuaJIT writes the message of the error at L->top, which its fast functions (tostring, string.sub,
 * string.upper ...) do not set when the interpreter calls them: it may still be what a function further down
 * has left, and then the message takes the place of a caller's local. So the top goes up to the base first,
 * which is above the locals of all callers. PUC Lua has no top below the base. */
#include "state.h"

#include "profile/trace.h"

#if LUA_VERSION_NUM == 501

/* Of LuaJIT; 5.1 has none. */
int luaJIT_setmode(lua_State *L, int index, int mode) __attribute__((weak));
enum { FLUSH_ENGINE = 0x0200 };

static void flush_traces(lua_State *L, lua_Debug *ar)
{
    (void)ar;
    lua_sethook(L, NULL, 0, 0);
    luaJIT_setmode(L, 0, FLUSH_ENGINE);
}

/* Compiled code keeps alive the functions that were called in it, with their upvalues: after the error, these may
 * be all that fills the memory. It can go where none of it runs: at the next instruction that is interpreted. */
static void flush_traces_soon(lua_State *L)
{
    if (luaJIT_setmode && !lua_gethook(L)) lua_sethook(L, flush_traces, LUA_MASKCOUNT, 1);
}

/* Index 0 is the slot at the top, if LuaJIT was not built with LUA_USE_APICHECK: each push copies it to
 * itself. Nothing grows below the base. */
void *hkl_refused(hkl_state *st)
{
    if (!st->main) return NULL; /* it is being made */
    hkl_reserve_free(st);
    flush_traces_soon(st->main);
    if (st->soft != 0 && hkl_trace_to_base(st->main)) return NULL; /* LuaJIT sets the top there */
    for (int n = lua_gettop(st->main); n < 0; n++)
        lua_pushvalue(st->main, 0);
    return NULL;
}

#endif

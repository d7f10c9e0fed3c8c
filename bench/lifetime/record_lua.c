/* require "lifetime_lua": the recorder's sites are lines of Lua. mark() = a trough. */
#include "record.h"

#include <lauxlib.h>
#include <limits.h>
#include <lua.h>
#include <malloc.h>
#include <string.h>

static lua_State *running;

static unsigned lua_frames(uint32_t *frames, unsigned most)
{
    unsigned n = 0;
    lua_Debug ar;
    for (int level = 0; running && n < most && lua_getstack(running, level, &ar); level++) {
        lua_getinfo(running, "Sl", &ar);
        if (ar.currentline <= 0) continue;
        uint32_t hash = record_hash(record_seed, ar.short_src, strlen(ar.short_src));
        frames[n++] = record_hash(hash, &ar.currentline, sizeof ar.currentline);
    }
    return n;
}

/* Coroutines have the hook of the thread that made them. */
static void hook(lua_State *L, lua_Debug *ar)
{
    (void)ar;
    running = L;
}

static int mark(lua_State *L)
{
    (void)L;
    malloc_trim(0);
    return 0;
}

int luaopen_lifetime_lua(lua_State *L);

int luaopen_lifetime_lua(lua_State *L)
{
    static const luaL_Reg functions[] = {{"mark", mark}, {NULL, NULL}};
    running = L;
    /* The count is never reached: with one, each instruction leaves in its frame where it is. */
    lua_sethook(L, hook, LUA_MASKCALL | LUA_MASKRET | LUA_MASKCOUNT, INT_MAX);
    record_set_frames(lua_frames);
    luaL_newlib(L, functions);
    return 1;
}

/* A module for tests: wrap() puts a lua_Alloc of its own around that of the state. */
#include <lauxlib.h>
#include <lua.h>

static lua_Alloc inner;
static void *inner_ud;

static void *outer(void *ud, void *ptr, size_t osize, size_t nsize)
{
    (void)ud;
    return inner(inner_ud, ptr, osize, nsize);
}

static int wrap(lua_State *L)
{
    inner = lua_getallocf(L, &inner_ud);
    lua_setallocf(L, outer, NULL);
    return 0;
}

int luaopen_wrapper(lua_State *L)
{
    lua_createtable(L, 0, 1);
    lua_pushcfunction(L, wrap);
    lua_setfield(L, -2, "wrap");
    return 1;
}

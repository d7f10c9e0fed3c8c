/* luaJIT_setmode, by which a library that serves Lua 5.1 and LuaJIT knows LuaJIT: NULL with 5.1, which has none. */
#ifndef HKL_SETMODE_H
#define HKL_SETMODE_H

#include <lua.h>

#if LUA_VERSION_NUM == 501
#ifdef __APPLE__ /* whose linkers want even a weak name to be in some library */
#include <dlfcn.h>

typedef int hkl_setmode_function(lua_State *L, int index, int mode);

static inline hkl_setmode_function *hkl_setmode(void)
{
    return (hkl_setmode_function *)dlsym(RTLD_DEFAULT, "luaJIT_setmode");
}
#define luaJIT_setmode (hkl_setmode())
#else
int luaJIT_setmode(lua_State *L, int index, int mode) __attribute__((weak));
#endif
#endif
#endif

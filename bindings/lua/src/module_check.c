#include "module_check.h"

#include "common/size.h"

#include <lauxlib.h>

void hkl_push_count(lua_State *L, uint64_t n)
{
#if LUA_VERSION_NUM >= 503
    lua_pushinteger(L, n < LUA_MAXINTEGER ? (lua_Integer)n : LUA_MAXINTEGER);
#else
    lua_pushnumber(L, (lua_Number)n);
#endif
}

hak_ctx *hkl_check_context(lua_State *L)
{
    hak_ctx *ctx = hak_lua_context(L);
    if (!ctx) luaL_error(L, "hakmem: the allocator of this state was replaced by another one");
    return ctx;
}

size_t hkl_check_size(lua_State *L, int index, int arg, const char *zero)
{
    if (lua_type(L, index) == LUA_TSTRING) {
        size_t bytes = 0;
        const char *text = lua_tostring(L, index), *wrong = hkc_size_parse(text, &bytes);
        if (wrong) luaL_argerror(L, arg, lua_pushfstring(L, "'%s' %s", text, wrong));
        return bytes;
    }
    if (index == arg) luaL_checknumber(L, arg);
    const lua_Number n = lua_tonumber(L, index);
    if (lua_type(L, index) != LUA_TNUMBER ||
        !(n >= 0 && n < (lua_Number)PTRDIFF_MAX && (lua_Number)(size_t)n == n))
        luaL_argerror(L, arg, lua_pushfstring(L, "a whole number of bytes expected, 0 = %s", zero));
    return (size_t)n;
}

// What the Lua tests share: running programs, and contexts whose end can be seen.
#pragma once

#include <hakmem/lua.h>

extern "C" {
#include <lauxlib.h>
#include <lualib.h>
}

#include "fake_os.h"

#include "catch.h"

#include <cstdio>
#include <string>
#include <unistd.h>

#ifndef LUA_OK
#define LUA_OK 0
#endif

namespace test
{

inline lua_State *new_state(lua_Alloc alloc, void *ud)
{
#if LUA_VERSION_NUM >= 505
    return lua_newstate(alloc, ud, 0);
#else
    return lua_newstate(alloc, ud);
#endif
}

// The result of a chunk as text; its error message when it fails.
inline std::string run(lua_State *L, const std::string &code)
{
    int top = lua_gettop(L);
    if (luaL_loadstring(L, code.c_str()) == LUA_OK) lua_pcall(L, 0, 1, 0);
    const char *text = lua_isboolean(L, -1) ? (lua_toboolean(L, -1) ? "true" : "false") : lua_tostring(L, -1);
    std::string result = text ? text : luaL_typename(L, -1);
    lua_settop(L, top);
    return result;
}

inline std::string run_file(lua_State *L, const char *name)
{
    return run(L, std::string("return dofile('") + PROGRAMS + name + "')");
}

// What programs/whole.lua returns.
constexpr const char *WHOLE_RESULT = "5343743";

// luaL_openlibs that may fail.
inline int open_libraries(lua_State *L)
{
    lua_pushcfunction(L, [](lua_State *state) {
        luaL_openlibs(state);
        return 0;
    });
    return lua_pcall(L, 0, 0, 0);
}

// The new state, with the libraries, a function of the test, and objects with finalizers: object(f) is a new one with
// the finalizer f, like(o) another with that of o, keep is a table for them.
inline lua_State *with_objects(lua_State *L, const char *name, lua_CFunction function)
{
    REQUIRE(L != nullptr);
    REQUIRE(open_libraries(L) == LUA_OK);
    lua_register(L, name, function);
#if LUA_VERSION_NUM >= 504
    lua_warning(L, "@off", 0); // of the finalizers that fail
#endif
    REQUIRE(run(L, "if newproxy then "
                   "  function object(f) local o = newproxy(true) getmetatable(o).__gc = f return o end "
                   "  like = newproxy "
                   "else "
                   "  function object(f) return setmetatable({}, { __gc = f }) end "
                   "  function like(o) return setmetatable({}, getmetatable(o)) end "
                   "end "
                   "keep = {} ") == "nil");
    return L;
}

// Options of contexts that are counted: used() is 0 when all of them are destroyed.
struct Counted {
    hak_quota *quota = hak_quota_new(nullptr, 0);
    hak_options options = HAK_OPTIONS_INIT;

    Counted()
    {
        options.quota = quota;
    }
    Counted(const Counted &) = delete;
    Counted &operator=(const Counted &) = delete;
    ~Counted()
    {
        hak_quota_delete(quota);
    }
    size_t used() const
    {
        return hak_quota_used(quota);
    }
};

inline hak_stats stats_of(const hak_ctx *ctx)
{
    hak_stats s = {};
    s.size = sizeof s;
    REQUIRE(hak_ctx_stats(ctx, &s) == 0);
    return s;
}
inline hak_stats stats_of(lua_State *L)
{
    return stats_of(hak_lua_context(L));
}
inline size_t live_blocks(const hak_ctx *ctx)
{
    return stats_of(ctx).live_blocks;
}

#ifdef _WIN32
extern "C" size_t test_resident(void); // support/mingw/mman.c
inline size_t resident()
{
    return test_resident();
}
#else
inline size_t resident()
{
    size_t pages = 0;
    FILE *f = std::fopen("/proc/self/statm", "r");
    if (f == nullptr || std::fscanf(f, "%*u %zu", &pages) != 1) pages = 0;
    if (f != nullptr) std::fclose(f);
    return pages * (size_t)sysconf(_SC_PAGESIZE);
}
#endif

} // namespace test

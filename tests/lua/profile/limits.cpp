// Profiles of a state under a limit: what its programs can make the host pay for stacks and names.
#include "lua_test.h"

#include <hakmem/profile.h>

#ifdef __GLIBC__
#include <malloc.h>
#endif

using namespace test;

namespace
{

constexpr size_t LIMIT = 4 << 20;

hak_profile_info info_of(lua_State *L)
{
    hak_profile_info info = {};
    info.size = sizeof info;
    REQUIRE(hak_profile_stats(hak_lua_context(L), &info) == 0);
    return info;
}

// Of malloc, where it tells: names of frames are there, and the state's own memory is not.
size_t malloc_bytes()
{
#if defined(__GLIBC__) && (__GLIBC__ > 2 || __GLIBC_MINOR__ >= 33)
    const struct mallinfo2 m = mallinfo2();
    return m.uordblks + m.hblkhd;
#else
    return 0;
#endif
}

lua_State *limited_state()
{
    lua_State *L = hak_lua_newstate(nullptr);
    REQUIRE(L != nullptr);
    luaL_openlibs(L);
    REQUIRE(hak_lua_limit(L, 0, LIMIT) == 0);
    return L;
}

// Each chunk has a name, and so a stack, of its own.
std::string chunks(int n)
{
    return "local load = loadstring or load\n"
           "for i = 1, " +
           std::to_string(n) +
           " do load('return {}', '=' .. i)() end\n"
           "return 'done'";
}

} // namespace

TEST_CASE("limits: a program under a limit makes the host pay for no more stacks and names than the limit")
{
    const auto mode = GENERATE(HAK_LUA_PROFILE_SAMPLED, HAK_LUA_PROFILE_EXACT, HAK_LUA_PROFILE_LINES);
    lua_State *L = limited_state();
    const size_t before = malloc_bytes();
    hak_lua_profile_options o = HAK_LUA_PROFILE_OPTIONS_INIT;
    o.mode = mode;
    if (mode == HAK_LUA_PROFILE_SAMPLED) o.mean = 1024;
    if (hak_lua_profile_start(L, &o) != 0) { // by line: the platform gives no registers
        REQUIRE(mode == HAK_LUA_PROFILE_LINES);
        lua_close(L);
        return;
    }
    CHECK(run(L, chunks(60000)) == "done");
    const hak_profile_info info = info_of(L);
    INFO("mode " << mode << ", stacks " << info.stacks);
    CHECK(info.table_bytes <= LIMIT);
    CHECK(info.samples + info.dropped_stacks + info.dropped_samples > 10000);
    CHECK(malloc_bytes() < before + LIMIT / 2); // a quarter, and what malloc adds to it
    lua_close(L);
}

TEST_CASE("limits: a table that the host asks for, and one without a limit, are as large as they are")
{
    const bool limited = GENERATE(false, true);
    lua_State *L = limited_state();
    if (!limited) REQUIRE(hak_lua_limit(L, 0, 0) == 0);
    hak_lua_profile_options o = HAK_LUA_PROFILE_OPTIONS_INIT;
    o.mode = HAK_LUA_PROFILE_EXACT;
    if (limited) o.table_bytes = 64 << 20;
    REQUIRE(hak_lua_profile_start(L, &o) == 0);
    CHECK(run(L, chunks(30000)) == "done");
    CHECK(info_of(L).table_bytes > LIMIT);
    CHECK(info_of(L).dropped_stacks == 0);
    lua_close(L);
}

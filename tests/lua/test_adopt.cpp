// Adoption with options.
#include "lua_test.h"

using namespace test;

namespace
{

lua_State *prepared(lua_State *L)
{
    luaL_openlibs(L);
    lua_getglobal(L, "package");
    lua_getfield(L, -1, "preload");
    lua_pushcfunction(L, luaopen_hakmem);
    lua_setfield(L, -2, "hakmem");
    lua_pushcfunction(L, luaopen_hakmem_adopt);
    lua_setfield(L, -2, "hakmem.adopt");
    lua_settop(L, 0);
    return L;
}

} // namespace

TEST_CASE("hakmem.adopt says what it wants")
{
    lua_State *L = prepared(luaL_newstate());
    for (const char *wrong : {"{ limits = 1 }", "{ shared = 1 }", "{ 1 }", "{ [true] = 1 }"}) {
        CAPTURE(wrong);
        const std::string why = run(L, std::string("require 'hakmem.adopt' ") + wrong);
        CHECK(why.find("{ limit = size, shared = true } or one of these expected") != std::string::npos);
    }
    CHECK(run(L, "require 'hakmem.adopt' { limit = 'much' }").find("'much' is no") != std::string::npos);
    CHECK(run(L, "require 'hakmem.adopt' ()").find("table expected") != std::string::npos);
    CHECK(hak_lua_context(L) == nullptr);

    CHECK(run(L, "require 'hakmem.adopt' { shared = true } return 1") == "1");
    hak_ctx *ctx = hak_lua_context(L);
    REQUIRE(ctx != nullptr);
    CHECK(hak_ctx_thread(ctx) != ctx);
    CHECK(run(L, "require 'hakmem.adopt' { shared = true, limit = '16M' } return 1") == "1");
    CHECK(stats_of(L).hard_limit == 16 << 20);
    lua_close(L);
}

TEST_CASE("hakmem.adopt does not share what is one thread's already")
{
    lua_State *L = prepared(hak_lua_newstate(nullptr));
    CHECK(run(L, "require 'hakmem.adopt' { shared = true }").find("one thread's alone already") !=
          std::string::npos);
    CHECK(run(L, "require 'hakmem.adopt' { limit = '16M' } return 1") == "1");
    CHECK(stats_of(L).hard_limit == 16 << 20);
    lua_close(L);
}

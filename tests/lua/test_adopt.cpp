// Adoption of states whose host has given them an allocator of its own.
#include "lua_test.h"

#include <cstdlib>

using namespace test;

namespace
{

// A host's limit.
struct Host {
    size_t used = 0, most = 4 << 20;

    static void *alloc(void *ud, void *p, size_t osize, size_t nsize)
    {
        auto *host = (Host *)ud;
        if (p == nullptr) osize = 0;
        if (nsize == 0) {
            host->used -= osize;
            std::free(p);
            return nullptr;
        }
        if (host->used - osize + nsize > host->most && nsize > osize) return nullptr;
        void *q = std::realloc(p, nsize);
        if (q != nullptr) host->used += nsize - osize;
        return q;
    }
};

constexpr const char *FILL =
    "local ok = pcall(function() local t = {} for i = 1, 1e6 do t[i] = { i } end end) "
    "collectgarbage() return ok";

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

TEST_CASE("a state that its host may limit is not adopted without a limit")
{
    Host host;
    lua_State *L = prepared(new_state(Host::alloc, &host));
    CHECK(run(L, FILL) == "false");
    const std::string why = run(L, "return require 'hakmem'");
    CHECK(why.find("hakmem: the program has given this state an allocator of its own") != std::string::npos);
    CHECK(why.find("require(\"hakmem.adopt\"){ limit = \"64M\" }") != std::string::npos);
    CHECK(hak_lua_context(L) == nullptr);
    CHECK(run(L, FILL) == "false");

    CHECK(run(L, "require 'hakmem.adopt' { limit = '3M' } return 'adopted'") == "adopted");
    CHECK(stats_of(L).hard_limit == 3 << 20);
    CHECK(run(L, FILL) == "false");
    CHECK(stats_of(L).committed_bytes <= 3 << 20);
    lua_close(L);
    CHECK(host.used == 0);
}

TEST_CASE("a state that its host may limit is adopted without one when that is said")
{
    Host host;
    lua_State *L = prepared(new_state(Host::alloc, &host));
    CHECK(run(L, "return require 'hakmem.adopt' { limit = 0 } == require 'hakmem'") == "true");
    CHECK(stats_of(L).hard_limit == 0);
    CHECK(run(L, FILL) == "true");
    lua_close(L);
    CHECK(host.used == 0);
}

TEST_CASE("the runtime's own allocator needs no word")
{
    lua_State *L = prepared(luaL_newstate());
    CHECK(run(L, "return type(require 'hakmem')") == "table");
    CHECK(stats_of(L).hard_limit == 0);
    lua_close(L);
}

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

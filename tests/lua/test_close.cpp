// lua_close under a limit: finalizers get memory beyond it, so much and no more.
#include "lua_test.h"

extern "C" {
#include "cfi.h"
}

#include <algorithm>

using namespace test;

#ifdef HKC_CFI_WALK

namespace
{

constexpr size_t ROOM = 16 * MiB;       // beyond twice the limit
constexpr size_t STACK_MOST = 17 * MiB; // of the main thread, where errors stay on it

int closed; // finalizers and the like that ran to their end

int count(lua_State *)
{
    closed++;
    return 0;
}

lua_State *prepare(lua_State *L)
{
    with_objects(L, "count", count);
    REQUIRE(run(L, "if jit then jit.off() end") == "nil");
    closed = 0;
    return L;
}

// Fills the memory with objects; how many there are.
int fill(lua_State *L)
{
    const std::string n =
        run(L, "local first = object(function() local x = { {} } local y = { x } count() end) "
               "keep[1] = first "
               "pcall(function() for i = 2, 1e7 do keep[i] = like(first) end end) "
               "first = nil collectgarbage() collectgarbage() return #keep");
    return std::atoi(n.c_str());
}

// The state that is asked for memory by finalizers of others.
lua_State *asked;
size_t asked_limit;
bool asked_got;

int ask(lua_State *)
{
    lua_pushcfunction(asked, [](lua_State *L) {
        lua_newuserdata(L, 8 << 20);
        asked_got = true;
        return 0;
    });
    if (lua_pcall(asked, 0, 0, 0) != LUA_OK) lua_settop(asked, 0);
    asked_limit = stats_of(asked).hard_limit;
    return 0;
}

} // namespace

TEST_CASE("finalizers of a full memory are served by lua_close, whatever the limit is")
{
    const bool labels = GENERATE(false, true);
    for (size_t more = 100 << 10; more < 1500 << 10; more += 173 << 10) {
        CAPTURE(labels, more);
        Counted counted;
        lua_State *L = prepare(hak_lua_newstate(&counted.options));
        if (labels) REQUIRE(hak_lua_labels(L, true) == 0);
        const size_t limit = stats_of(L).committed_bytes + more;
        REQUIRE(hak_lua_limit(L, 0, limit) == 0);
        const int objects = fill(L);
        REQUIRE(objects > 100);
        CHECK(hak_quota_peak(counted.quota) <= limit + MiB);
        closed = 0;
        lua_close(L);
        CHECK(closed == objects);
        CHECK(counted.used() == 0);
        CHECK(hak_quota_peak(counted.quota) <= 2 * limit + ROOM + MiB);
    }
}

TEST_CASE("finalizers under lua_close do not start a collector that a soft limit hurries")
{
    const bool labels = GENERATE(false, true);
    for (int objects = 2000; objects < 6000; objects += 371) {
        CAPTURE(labels, objects);
        Counted counted;
        lua_State *L = prepare(hak_lua_newstate(&counted.options));
        if (labels) REQUIRE(hak_lua_labels(L, true) == 0);
        REQUIRE(
            run(L,
                "local first = object(function() local t = {} for i = 1, 20 do t[i] = { i } end count() end) "
                "keep[1] = first for i = 2, " +
                    std::to_string(objects) + " do keep[i] = like(first) end return #keep") ==
            std::to_string(objects));
        REQUIRE(hak_lua_limit(L, stats_of(L).committed_bytes / 2, 0) == 0);
        closed = 0;
        lua_close(L);
        CHECK(closed == objects);
        CHECK(counted.used() == 0);
    }
}

TEST_CASE("a context of the host's and an adopted state are closed like others")
{
    const bool adopted = GENERATE(false, true);
    hak_ctx *ctx = adopted ? nullptr : hak_ctx_new(nullptr, nullptr);
    lua_State *L = prepare(adopted ? luaL_newstate() : new_state(hak_lua_alloc, ctx));
    if (adopted) {
        lua_pushcfunction(L, luaopen_hakmem);
        REQUIRE(lua_pcall(L, 0, 0, 0) == LUA_OK);
    }
    REQUIRE(hak_lua_limit(L, 0, stats_of(L).committed_bytes + MiB) == 0);
    const int objects = fill(L);
    REQUIRE(objects > 1000);
    closed = 0;
    lua_close(L);
    CHECK(closed == objects);
    if (ctx != nullptr) CHECK(live_blocks(ctx) == 0);
    hak_ctx_destroy(ctx);
}

TEST_CASE("finalizers without end get twice the limit and 16 MiB, then each of them fails")
{
    const bool labels = GENERATE(false, true);
    const bool adopted = GENERATE(false, true);
    CAPTURE(labels, adopted);
    Counted counted;
    size_t peak = 0, limit;
    {
        lua_State *L = prepare(adopted ? luaL_newstate() : hak_lua_newstate(&counted.options));
        if (adopted) {
            lua_pushcfunction(L, luaopen_hakmem);
            REQUIRE(lua_pcall(L, 0, 0, 0) == LUA_OK);
        }
        REQUIRE(hak_lua_labels(L, labels) == 0);
        REQUIRE(run(L, "last = object(function() count() end) "
                       "local first = object(function() while true do keep[#keep + 1] = ('x'):rep(100000) .. "
                       "#keep end end) "
                       "more = { first } for i = 2, 300 do more[i] = like(first) end return #more") == "300");
        lua_gc(L, LUA_GCCOLLECT, 0);
        limit = stats_of(L).committed_bytes + MiB;
        REQUIRE(hak_lua_limit(L, 0, limit) == 0);
        closed = 0;
        lua_close(L);
    }
    CHECK(closed == 1);
    peak = hak_quota_peak(counted.quota);
    if (!adopted) {
        CHECK(peak > limit + 8 * MiB);
        CHECK(peak <= 2 * limit + ROOM + STACK_MOST);
    }
    CHECK(counted.used() == 0);
}

TEST_CASE("a quota holds while a state is closed")
{
    Counted counted;
    lua_State *L = prepare(hak_lua_newstate(&counted.options));
    REQUIRE(run(L, "last = object(function() keep[1] = ('x'):rep(3000000) count() end) return 1") == "1");
    lua_gc(L, LUA_GCCOLLECT, 0);
    REQUIRE(hak_lua_limit(L, 0, stats_of(L).committed_bytes + MiB) == 0);
    const size_t most = counted.used() + 2 * MiB;
    hak_quota_set(counted.quota, most);
    lua_close(L);
    CHECK(closed == 0);
    CHECK(hak_quota_peak(counted.quota) <= most);
    CHECK(counted.used() == 0);
}

TEST_CASE("a limit that the host has set on the context holds while the state is closed")
{
    Counted counted;
    lua_State *L = prepare(hak_lua_newstate(&counted.options));
    REQUIRE(run(L, "last = object(function() keep[1] = ('x'):rep(3000000) count() end) return 1") == "1");
    lua_gc(L, LUA_GCCOLLECT, 0);
    const size_t most = stats_of(L).committed_bytes + MiB;
    REQUIRE(hak_lua_limit(L, 0, 2 * most) == 0);
    REQUIRE(hak_limit(hak_lua_context(L), 0, most, nullptr, nullptr) == 0);
    lua_close(L);
    CHECK(closed == 0);
    CHECK(hak_quota_peak(counted.quota) <= most + MiB);
}

TEST_CASE("a finalizer that the collector runs is under the limit")
{
    lua_State *L = prepare(hak_lua_newstate(nullptr));
    REQUIRE(run(L, "function final() keep[1] = ('x'):rep(3000000) count() end return 1") == "1");
    const size_t limit = stats_of(L).committed_bytes + MiB;
    REQUIRE(hak_lua_limit(L, 0, limit) == 0);
    const bool generations = LUA_VERSION_NUM >= 504 && GENERATE(false, true);
    if (generations) run(L, "collectgarbage('generational')");
    const std::string result = run(L, "local tried = 0 "
                                      "for i = 1, 20 do "
                                      "  object(function() tried = tried + 1 pcall(final) end) "
                                      "  collectgarbage() collectgarbage('step') end "
                                      "return tried > 0 and keep[1] == nil");
    CHECK(result == "true");
    CHECK(closed == 0);
    CHECK(stats_of(L).hard_limit == limit);
    lua_close(L);
}

TEST_CASE("the end of a state lifts no limit of another one that works for its finalizer")
{
    asked = prepare(hak_lua_newstate(nullptr));
    const size_t limit = stats_of(asked).committed_bytes + MiB;
    REQUIRE(hak_lua_limit(asked, 0, limit) == 0);
    asked_got = false;
    asked_limit = 0;
    lua_State *L = prepare(hak_lua_newstate(nullptr));
    REQUIRE(hak_lua_limit(L, 0, stats_of(L).committed_bytes + MiB) == 0);
    lua_register(L, "ask", ask);
    REQUIRE(run(L, "last = object(function() ask() keep[1] = ('x'):rep(3000000) count() end) return 1") ==
            "1");
    lua_close(L);
    CHECK(closed == 1);
    CHECK(asked_limit == limit);
    CHECK_FALSE(asked_got);
    lua_close(asked);
}

#if LUA_VERSION_NUM >= 504
TEST_CASE("a value that is closed by lua_close may allocate, too")
{
    lua_State *L = prepare(hak_lua_newstate(nullptr));
    luaL_loadstring(
        L, "return setmetatable({}, { __close = function() local s = ('x'):rep(3000000) count() end })");
    lua_call(L, 0, 1);
    lua_toclose(L, -1);
    REQUIRE(hak_lua_limit(L, 0, stats_of(L).committed_bytes + MiB) == 0);
    lua_close(L);
    CHECK(closed == 1);
}
#endif

#endif

// Limits: the error, the state after it, and the collector that is hurried in time.
#include "lua_test.h"

using namespace test;

namespace
{

struct State {
    lua_State *L = hak_lua_newstate(nullptr);
    State()
    {
        REQUIRE(L != nullptr);
        luaL_openlibs(L);
    }
    State(const State &) = delete;
    State &operator=(const State &) = delete;
    ~State()
    {
        lua_close(L);
    }
    operator lua_State *() const
    {
        return L;
    }
    size_t committed() const
    {
        return stats_of(L).committed_bytes;
    }
};

// About 1 MB live, then 200 rounds of garbage of about 100 KB.
const char *const ROUNDS = "local keep = {} for i = 1, 12000 do keep[i] = { i, 'k' .. i } end "
                           "for round = 1, 200 do local t = {} "
                           "for i = 1, 1000 do t[i] = { i, round .. ':' .. i } end end "
                           "return #keep";

} // namespace

TEST_CASE("over the limit there is an error that can be caught, and the state goes on")
{
    State L;
    size_t limit = L.committed() + (2 << 20);
    REQUIRE(hak_lua_limit(L, 0, limit) == 0);
    for (int round = 0; round < 5; round++) {
        CHECK(run(L, "local t = {} for i = 1, 1e7 do t[i] = { i } end") == "not enough memory");
        CHECK(L.committed() <= limit);
        CHECK(run(L, "return string.rep('x', 1e8)").find("not enough memory") != std::string::npos);
        lua_gc(L, LUA_GCCOLLECT, 0); // even loading a chunk needs memory
        CHECK(run(L, "local t = {} for i = 1, 1000 do t[i] = { i } end return #t") == "1000");
    }
    CHECK(stats_of(L).failures > 0);
    CHECK(stats_of(L).hard_limit == limit);
    // Lifted, the same is no error.
    REQUIRE(hak_lua_limit(L, 0, 0) == 0);
    CHECK(run(L, "local t = {} for i = 1, 1e5 do t[i] = { i } end return #t") == "100000");
    CHECK(run_file(L, "whole.lua") == WHOLE_RESULT);
}

TEST_CASE("an error in Lua's own pcall leaves the program running")
{
    State L;
    REQUIRE(hak_lua_limit(L, 0, L.committed() + (1 << 20)) == 0);
    CHECK(run(L, "local ok, e = pcall(function() local t = {} while true do t[#t + 1] = { #t } end end) "
                 "collectgarbage() "
                 "return tostring(ok) .. ': ' .. e") == "false: not enough memory");
}

TEST_CASE("garbage does not count against the limit")
{
    bool labels = GENERATE(false, true);
    size_t needed;
    {
        State L;
        size_t start = L.committed();
        run(L,
            "keep = {} for i = 1, 12000 do keep[i] = { i, 'k' .. i } end collectgarbage() collectgarbage()");
        needed = L.committed() - start;
    }
    State L;
    if (labels) REQUIRE(hak_lua_labels(L, true) == 0);
    REQUIRE(hak_lua_limit(L, 0, L.committed() + needed + needed / 2) == 0);
    CHECK(run(L, ROUNDS) == "12000");
}

TEST_CASE("a program's own pace of collection is back when memory is no longer short")
{
    State L;
    int pace = lua_gc(L, LUA_GCSETSTEPMUL, 321);
    (void)pace;
    REQUIRE(hak_lua_limit(L, 0, L.committed() + (3 << 20)) == 0);
    run(L, ROUNDS);
    run(L, "collectgarbage() for i = 1, 20000 do local t = { i } end collectgarbage()");
    CHECK(lua_gc(L, LUA_GCSETSTEPMUL, 321) == Approx(321).margin(4));
    // and when the limit goes while the collector is hurried
    run(L, "t = {} while true do t[#t + 1] = { #t } end");
    REQUIRE(hak_lua_limit(L, 0, 0) == 0);
    CHECK(lua_gc(L, LUA_GCSETSTEPMUL, 321) == Approx(321).margin(4));
}

TEST_CASE("from the soft limit on the collector is hurried")
{
    auto peak_with = [](size_t soft) {
        State L;
        run(L, "collectgarbage('setpause', 1000)"); // by itself it would wait for 10 times the live size
        if (soft != 0) REQUIRE(hak_lua_limit(L, L.committed() + soft, 0) == 0);
        CHECK(run(L, ROUNDS) == "12000");
        return stats_of(L).peak_bytes;
    };
    size_t idle = peak_with(0), hurried = peak_with(3 << 20);
    INFO("peak " << idle << " without, " << hurried << " with");
    CHECK(hurried < idle / 2);
}

TEST_CASE("a finalizer may allocate while the state is closed under a limit")
{
    static bool allocated;
    allocated = false;
    lua_State *L = hak_lua_newstate(nullptr);
    luaL_openlibs(L);
    lua_newuserdata(L, 8);
    lua_newtable(L);
    lua_pushcfunction(L, [](lua_State *state) {
        lua_newuserdata(state, 4 << 20);
        allocated = true;
        return 0;
    });
    lua_setfield(L, -2, "__gc");
    lua_setmetatable(L, -2);
    lua_setglobal(L, "object");
    REQUIRE(hak_lua_limit(L, 0, stats_of(L).committed_bytes + (1 << 20)) == 0);
    SECTION("with hak_lua_close")
    {
        CHECK(hak_lua_close(L) == 0);
        CHECK(allocated);
    }
    SECTION("with lua_close the finalizer fails, and all the rest is done")
    {
        lua_close(L);
        CHECK(!allocated);
    }
}

TEST_CASE("a soft limit above the hard one is refused")
{
    State L;
    REQUIRE(hak_lua_limit(L, 0, 64 << 20) == 0);
    CHECK(hak_lua_limit(L, 2 << 20, 1 << 20) == -1);
    CHECK(stats_of(L).hard_limit == 64 << 20);
    CHECK(hak_lua_limit(L, 2 << 20, 0) == 0);
    CHECK(stats_of(L).hard_limit == 0);
    CHECK(stats_of(L).soft_limit == 2 << 20);
}

// Prints the figures of docs/lua.md.
TEST_CASE("the smallest limit under which a program runs", "[.figures]")
{
    auto smallest = [](bool hurried) {
        for (size_t limit = 1 << 20;; limit += 50 << 10) {
            State L;
            if (hurried) REQUIRE(hak_lua_limit(L, 0, limit) == 0);
            else REQUIRE(hak_limit(hak_lua_context(L), 0, limit, nullptr, nullptr) == 0);
            if (run(L, ROUNDS) == "12000") return limit >> 10;
        }
    };
    State L;
    run(L, "keep = {} for i = 1, 12000 do keep[i] = { i, 'k' .. i } end collectgarbage() collectgarbage()");
    hak_ctx_flush(hak_lua_context(L));
    std::printf("live data alone %zu KiB, hard limit alone %zu KiB, hak_lua_limit %zu KiB\n",
                L.committed() >> 10, smallest(false), smallest(true));
}

// Any request for pages may fail: the n-th does, for every n until a whole Lua program succeeds.
#include "lua_test.h"

using namespace test;

namespace {

const char *const PROGRAM = "local t = {} for i = 1, 3000 do t[i] = { i, 'n' .. i } end "
                            "local s = string.rep('abc', 100000) "
                            "local co = coroutine.wrap(function() for i = 1, 10 do coroutine.yield(i) end end) "
                            "for i = 1, 10 do co() end "
                            "local f = (loadstring or load)('return function(...) return select(\"#\", ...) end') "
                            "t = nil collectgarbage() "
                            "return #s + f()(1, 2, 3)";

enum class Outcome { no_state, no_libraries, no_memory, done };

Outcome attempt(hak_space *space, const hak_options *options, bool labels) {
    lua_State *L = labels ? hak_lua_newstate_labelled(space, options) : hak_lua_newstate_in(space, options);
    if (L == nullptr)
        return Outcome::no_state;
    Outcome outcome = Outcome::no_libraries;
    if (open_libraries(L) == LUA_OK) {
        std::string result = run(L, PROGRAM);
        if (result == "300003") {
            outcome = Outcome::done;
        } else {
            CHECK(result == "not enough memory");
            CHECK(run(L, "collectgarbage() return 'on'") == "on");
            outcome = Outcome::no_memory;
        }
    }
    lua_close(L);
    return outcome;
}

} // namespace

TEST_CASE("every request for pages fails once") {
    bool labels = GENERATE(false, true);
    unsigned outcomes[4] = {};
    bool done = false;
    for (uint64_t n = 1; !done; n++) {
        REQUIRE(n < 20000);
        INFO("request " << n << " fails");
        FakeOs os;
        Counted counted;
        os.fail_nth(n);
        hak_space_options options = HAK_SPACE_OPTIONS_INIT;
        options.os = os.table();
        options.reserve = 256 * MiB;
        hak_space *space = hak_space_new(&options);
        if (space != nullptr) {
            Outcome outcome = attempt(space, &counted.options, labels);
            outcomes[(int)outcome]++;
            done = outcome == Outcome::done && os.failed == 0;
        }
        CHECK(counted.used() == 0); // no context is left
        hak_space_delete(space);
        REQUIRE(os.close() == "");
    }
    CHECK(outcomes[(int)Outcome::no_state] > 0);
    CHECK(outcomes[(int)Outcome::no_memory] > 0);
}

// A limit at every height instead: all places fail, not only those where pages are asked for.
TEST_CASE("a state is not to be broken by a limit of any height") {
    lua_State *L = hak_lua_newstate(nullptr);
    luaL_openlibs(L);
    size_t start = stats_of(L).committed_bytes;
    lua_close(L);
    for (size_t limit = 4 * KiB; limit < start + 2 * MiB; limit += limit < 128 * KiB ? KiB : 32 * KiB) {
        INFO("limit " << limit);
        Counted counted;
        hak_ctx *ctx = hak_ctx_new(nullptr, &counted.options);
        REQUIRE(hak_limit(ctx, 0, limit, nullptr, nullptr) == 0);
        L = lua_newstate(hak_lua_alloc, ctx);
        if (L != nullptr) {
            if (open_libraries(L) == LUA_OK) {
                std::string result = run(L, PROGRAM);
                CHECK((result == "300003" || result == "not enough memory"));
            }
            lua_close(L);
        }
        CHECK(hak_ctx_live_bytes(ctx) == 0);
        hak_ctx_destroy(ctx);
        CHECK(counted.used() == 0);
    }
}

// Any request for pages may fail: the n-th alone, or all from the n-th on, for every n until a whole Lua
// program succeeds.
#include "lua_test.h"

using namespace test;

namespace
{

const char *const PROGRAM =
    "local t = {} for i = 1, 5000 do t[i] = { i, 'n' .. i } end "
    "local s = string.rep('abc', 100000) "
    "local co = coroutine.wrap(function() for i = 1, 10 do coroutine.yield(i) end end) "
    "for i = 1, 10 do co() end "
    "local f = (loadstring or load)('return function(...) return select(\"#\", ...) end') "
    "t = nil collectgarbage() "
    "return #s + f()(1, 2, 3)";

// A table before the one of a FakeOs, which checks that pages are used and returned by the rules.
struct FailingOs {
    FakeOs inner;
    hak_os table = *inner.table();
    uint64_t requests = 0, fail_at = 0, failed = 0;
    bool from_then_on = false;

    FailingOs()
    {
        table.user = this;
        table.reserve = [](void *user, size_t n, size_t align, uintptr_t below) -> void * {
            FailingOs *os = static_cast<FailingOs *>(user);
            return os->refused() ? nullptr : os->inner.table()->reserve(&os->inner, n, align, below);
        };
        table.commit = [](void *user, void *p, size_t n) {
            FailingOs *os = static_cast<FailingOs *>(user);
            return os->refused() ? -1 : os->inner.table()->commit(&os->inner, p, n);
        };
        table.remap = [](void *user, void *p, size_t old_n, size_t n, uintptr_t below) -> void * {
            FailingOs *os = static_cast<FailingOs *>(user);
            return os->refused() ? nullptr : os->inner.table()->remap(&os->inner, p, old_n, n, below);
        };
        table.decommit = [](void *user, void *p, size_t n) {
            FailingOs *os = static_cast<FailingOs *>(user);
            os->inner.table()->decommit(&os->inner, p, n);
        };
        table.release = [](void *user, void *p, size_t n) {
            FailingOs *os = static_cast<FailingOs *>(user);
            os->inner.table()->release(&os->inner, p, n);
        };
        table.huge = nullptr;
        table.clock = [](void *user) {
            FailingOs *os = static_cast<FailingOs *>(user);
            return os->inner.table()->clock(&os->inner);
        };
    }

    bool refused()
    {
        requests++;
        bool refuse = from_then_on ? requests >= fail_at : requests == fail_at;
        failed += refuse;
        return refuse;
    }
};

enum Outcome { NO_SPACE, NO_STATE, NO_LIBRARIES, NO_MEMORY, DONE, OUTCOMES };

// help: ends the shortage.
template <class Help>
Outcome run_program(lua_State *L, Help help)
{
    if (open_libraries(L) != LUA_OK) return NO_LIBRARIES;
    std::string result = run(L, PROGRAM);
    if (result == "300003") return DONE;
    CHECK(result.find("not enough memory") != std::string::npos);
    help();
    CHECK(run(L, "collectgarbage() return 'on'") == "on");
    return NO_MEMORY;
}

Outcome attempt(FailingOs &os, bool labels)
{
    hak_space_options options = HAK_SPACE_OPTIONS_INIT;
    options.os = &os.table;
    options.reserve = 256 * MiB;
    hak_space *space = hak_space_new(&options);
    if (space == nullptr) return NO_SPACE;
    Outcome outcome = NO_STATE;
    {
        Counted counted;
        lua_State *L = labels ? hak_lua_newstate_labelled(space, &counted.options)
                              : hak_lua_newstate_in(space, &counted.options);
        if (L != nullptr) {
            outcome = run_program(L, [&os] { os.fail_at = UINT64_MAX; });
            lua_close(L);
        }
        CHECK(counted.used() == 0); // no context is left
    }
    hak_space_delete(space);
    return outcome;
}

} // namespace

TEST_CASE("requests for pages fail")
{
    bool labels = GENERATE(false, true);
    bool from_then_on = GENERATE(false, true);
    unsigned outcomes[OUTCOMES] = {};
    bool done = false;
    for (uint64_t n = 1; !done; n++) {
        REQUIRE(n < 10000);
        INFO("request " << n << (from_then_on ? " and all later ones fail" : " fails")
                        << (labels ? ", labels" : ""));
        FailingOs os;
        os.fail_at = n;
        os.from_then_on = from_then_on;
        Outcome outcome = attempt(os, labels);
        outcomes[outcome]++;
        done = os.failed == 0;
        REQUIRE(os.inner.close() == "");
        CHECK((!done || outcome == DONE));
    }
    CHECK(outcomes[NO_SPACE] > 0);
    if (from_then_on) CHECK(outcomes[NO_MEMORY] > 5);
}

// A limit at every height instead: all places fail, not only those where pages are asked for.
TEST_CASE("no height of a limit breaks a state")
{
    unsigned outcomes[OUTCOMES] = {};
    for (size_t limit = 4 * KiB; outcomes[DONE] < 5; limit += limit < 128 * KiB ? KiB : 32 * KiB) {
        INFO("limit " << limit);
        REQUIRE(limit < 64 * MiB);
        Counted counted;
        hak_ctx *ctx = hak_ctx_new(nullptr, &counted.options);
        REQUIRE(hak_limit(ctx, 0, limit, nullptr, nullptr) == 0);
        lua_State *L = new_state(hak_lua_alloc, ctx);
        Outcome outcome = NO_STATE;
        if (L != nullptr) {
            outcome = run_program(L, [ctx] { hak_limit(ctx, 0, 0, nullptr, nullptr); });
            lua_close(L);
        }
        outcomes[outcome]++;
        CHECK(live_blocks(ctx) == 0);
        hak_ctx_destroy(ctx);
        CHECK(counted.used() == 0);
    }
    CHECK(outcomes[NO_LIBRARIES] > 0);
    CHECK(outcomes[NO_MEMORY] > 0);
}

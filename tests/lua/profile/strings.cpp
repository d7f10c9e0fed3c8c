// Strings from buffers: those of 5.5 are freed by the lua_Alloc that was installed when they were made.
#include "lua_test.h"

#include <hakmem/profile.h>

using namespace test;

namespace
{

constexpr hak_lua_profile_mode EXACT = HAK_LUA_PROFILE_EXACT, BY_LINE = HAK_LUA_PROFILE_LINES;
constexpr size_t BYTES = 40 * 3000;

void start(lua_State *L, hak_lua_profile_mode mode)
{
    hak_lua_profile_options o = HAK_LUA_PROFILE_OPTIONS_INIT;
    o.mode = mode;
    REQUIRE(hak_lua_profile_start(L, &o) == 0);
}

// What the binding can be told to do, each with a lua_Alloc of its own; run one after the other.
const struct Way {
    const char *name;
    void (*go)(lua_State *);
} ways[] = {
    {"as it is", [](lua_State *) {}},
    {"labels", [](lua_State *L) { CHECK(hak_lua_labels(L, true) == 0); }},
    {"a soft limit", [](lua_State *L) { CHECK(hak_lua_limit(L, 64 << 20, 128 << 20) == 0); }},
    {"exact", [](lua_State *L) { start(L, EXACT); }},
    {"after it", [](lua_State *L) { CHECK(hak_lua_profile_stop(L) == 0); }},
    {"by line", [](lua_State *L) { start(L, BY_LINE); }},
    {"no labels", [](lua_State *L) { CHECK(hak_lua_labels(L, false) == 0); }},
    {"after both", [](lua_State *L) { CHECK(hak_lua_profile_stop(L) == 0); }},
    {"no limit", [](lua_State *L) { CHECK(hak_lua_limit(L, 0, 0) == 0); }},
    {"exact again", [](lua_State *L) { start(L, EXACT); }},
};
constexpr int WAYS = sizeof ways / sizeof *ways;

double live_bytes_of(hak_ctx *ctx)
{
    double live = 0;
    const auto add = [](void *user, const hak_profile_stack *s) {
        *static_cast<double *>(user) += s->live_bytes;
        return true;
    };
    hak_profile_visit(ctx, add, &live);
    return live;
}

// Each string is another one: 5.1 and LuaJIT have equal ones once.
std::string make(int way)
{
    const std::string number = std::to_string(way), all = "all[" + number + "]";
    return all + " = {} for i = 1, 40 do " + all + "[i] = table.concat({('s'):rep(1500), " + number +
           " * 100 + i, ('e'):rep(1500)}) end return #" + all;
}

} // namespace

TEST_CASE("strings: made in each of the binding's ways, they are freed in each of the others")
{
    const bool hosts = GENERATE(false, true);
    const int freed_in = GENERATE(range(0, WAYS));
    CAPTURE(hosts, ways[freed_in].name);
    Counted counted;
    hak_ctx *ctx = hosts ? hak_ctx_new(nullptr, &counted.options) : nullptr;
    lua_State *L = hosts ? new_state(hak_lua_alloc, ctx) : hak_lua_newstate(&counted.options);
    REQUIRE(L != nullptr);
    ctx = hak_lua_context(L);
    luaL_openlibs(L);
    run(L, "if jit then jit.off() end all = {} keep = {}");
    for (int way = 0; way < WAYS; way++) {
        CAPTURE(ways[way].name);
        ways[way].go(L);
        CHECK(run(L, make(way)) == "40");
        if (way != freed_in) continue;
        const size_t before = stats_of(ctx).live_bytes;
        const double profiled = live_bytes_of(ctx);
        run(L, "all = {} collectgarbage() collectgarbage()");
        CHECK(before - stats_of(ctx).live_bytes > BYTES * 9 / 10 * (size_t)(way + 1));
        // of a profile by line, which goes on with frees, or an exact one
        if (way >= 5 || way == 3) CHECK(profiled - live_bytes_of(ctx) > 0.9 * BYTES);
        CHECK(live_bytes_of(ctx) < 0.5 * BYTES);
        // others come to lie there
        run(L, "for i = 1, 200 do keep[i] = ('k'):rep(2000 + i) end keep = {} collectgarbage()");
        CHECK(hak_ctx_check(ctx, nullptr, nullptr));
    }
    run(L, "all = nil collectgarbage() collectgarbage()");
    CHECK(live_bytes_of(ctx) < 0.5 * BYTES);
    CHECK(hak_lua_close(L) == 0);
    if (hosts) {
        CHECK(live_blocks(ctx) == 0);
        hak_ctx_destroy(ctx);
    }
    CHECK(counted.used() == 0);
}

TEST_CASE("strings: the state that made them may end by close or drop while a profile of it runs")
{
    const auto mode = GENERATE(EXACT, BY_LINE);
    const bool drops = GENERATE(false, true);
    Counted counted;
    lua_State *L = hak_lua_newstate(&counted.options);
    REQUIRE(L != nullptr);
    luaL_openlibs(L);
    run(L, "all = {}");
    CHECK(run(L, make(0)) == "40");
    start(L, mode);
    CHECK(run(L, make(1)) == "40");
    CHECK((drops ? hak_lua_drop(L) : hak_lua_close(L)) == 0);
    CHECK(counted.used() == 0);
}

// Where no frames are walked: labels by the kind of object that Lua names, profiles by the place in the runtime that
// asked, and what is refused.
#include "label_test.h"

#include <hakmem/profile.h>

#include <cstdlib>
#include <memory>

using namespace test;

TEST_CASE("objects have the label of their kind without a look at the stack")
{
    struct {
        const char *label;
        double at_least; // share of the growth
        const char *code;
    } const programs[] = {
        {"string", 0.9, "keep[i] = ('x'):rep(200) .. i"},
        {"table", 0.9, "keep[i] = {}"},
        {"closure", 0.4, "keep[i] = function() return i end"},
        {"upvalue", 0.3, "keep[i] = function() return i end"},
        {"thread", 0.1, "keep[i] = coroutine.create(print)"},
        {"proto", 0.1, "keep[i] = load('local a, b = 1, 2 return function() return a + b end')"},
    };
    for (const auto &program : programs) {
        LabelledState state;
        const Growth growth =
            growth_of(state.L, std::string("keep = {} for i = 1, 2000 do keep[i] = false end "
                                           "return function() for i = 1, 2000 do ") +
                                   program.code + " end end");
        INFO(program.label << ": " << growth.text());
        CHECK(growth.share(program.label) >= program.at_least);
    }
}

TEST_CASE("a block that is no object has the label other, and a scope's label where there is one")
{
    LabelledState state;
    luaL_requiref(state.L, "hakmem", luaopen_hakmem, 1);
    lua_pop(state.L, 1);
    const Growth plain =
        growth_of(state.L, "return function() big = {} for i = 1, 50000 do big[i] = i end end");
    INFO(plain.text());
    CHECK(plain.share("other") > 0.9);
    const Growth scoped = growth_of(state.L, "return function() hakmem.label('mine', function() "
                                             "  other = {} for i = 1, 50000 do other[i] = i end end) end");
    INFO(scoped.text());
    CHECK(scoped.share("mine") > 0.9);
}

TEST_CASE("a profile has the places in the runtime that asked, and its report names them")
{
    LabelledState state;
    hak_lua_profile_options options = HAK_LUA_PROFILE_OPTIONS_INIT;
    options.mode = HAK_LUA_PROFILE_EXACT;
    REQUIRE(hak_lua_profile_start(state.L, &options) == 0);
    REQUIRE(run(state.L, "keep = {} for i = 1, 1000 do keep[i] = { ('x'):rep(100) .. i } end") == "nil");
    struct Seen {
        size_t stacks = 0, sites = 0;
        double blocks = 0;
    } seen;
    hak_profile_visit(
        hak_lua_context(state.L),
        [](void *user, const hak_profile_stack *stack) {
            auto *s = static_cast<Seen *>(user);
            s->stacks++;
            s->sites += stack->depth == 1 && stack->frames[0] != 0;
            s->blocks += stack->live_blocks;
            return true;
        },
        &seen);
    CHECK(seen.stacks > 1);
    CHECK(seen.sites == seen.stacks);
    CHECK(seen.blocks >= 2000);
    std::unique_ptr<FILE, int (*)(FILE *)> file(std::tmpfile(), std::fclose);
    REQUIRE(file);
    REQUIRE(hak_lua_report_json(state.L, file.get()) == 0);
    std::string text((size_t)std::ftell(file.get()), '\0');
    std::rewind(file.get());
    text.resize(std::fread(&text[0], 1, text.size(), file.get()));
    for (const char *part : {"\"schema\":\"hakmem-report/1\"", "\"name\":\"closure\"",
                             "\"resident_bytes\":", "\"function\":\"luaM_", "\"stacks\":"}) {
        INFO(part);
        CHECK(text.find(part) != std::string::npos);
    }
}

TEST_CASE("what needs frames or a socket is refused, with a line")
{
    LabelledState state;
    hak_lua_profile_options options = HAK_LUA_PROFILE_OPTIONS_INIT;
    options.mode = HAK_LUA_PROFILE_LINES;
    CHECK(hak_lua_profile_start(state.L, &options) == -1);
    CHECK(run(state.L, "return 1 + 1") == "2");
#ifdef _WIN32
    char why[256] = "";
    CHECK(hak_lua_live_start(state.L, "on", why, sizeof why) == -1);
    INFO(why);
    CHECK(std::string(why).find("on Linux alone") != std::string::npos);
    hak_lua_live_stop(state.L);
#endif
}

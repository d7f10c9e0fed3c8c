// States that share the lua_Alloc and ud of a state in a heap that is one thread's alone, on that thread: what
// one of them changes or ends, the other does not feel.
#include "lua_test.h"

#include <cstdlib>
#include <cstring>
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/lsan_interface.h>
#endif

using namespace test;

namespace
{

// A context whose first state ends before the others stays until the process ends, with its profile, as
// hakmem/lua.h says: LeakSanitizer does not look at the context, and would report the profile.
struct ContextStays {
    ContextStays()
    {
#ifdef __SANITIZE_ADDRESS__
        __lsan_disable();
#endif
    }
    ~ContextStays()
    {
#ifdef __SANITIZE_ADDRESS__
        __lsan_enable();
#endif
    }
};

// Some turns of the collector, and strings of many sizes.
constexpr const char *WORK = "local t = {}\n"
                             "for r = 1, 5 do for i = 1, 1000 do\n"
                             "  t[i] = { i, tostring(i * r), ('x'):rep(i % 300) }\n"
                             "end end\n"
                             "return #t";

lua_State *beside(lua_State *L)
{
    void *ud;
    const lua_Alloc f = lua_getallocf(L, &ud);
    lua_State *other = new_state(f, ud);
    REQUIRE(other != nullptr);
    luaL_openlibs(other);
    return other;
}

// 0 = ok.
int profile(lua_State *L, hak_lua_profile_mode mode)
{
    hak_lua_profile_options o = HAK_LUA_PROFILE_OPTIONS_INIT;
    o.mode = mode;
    if (mode == HAK_LUA_PROFILE_SAMPLED) o.mean = 4096;
    return hak_lua_profile_start(L, &o);
}

// A state, its lua_Alloc one of those that there are.
enum Kind { OWN, LABELLED, LIMITED, BOTH, SAMPLED, EXACT, LINES, KINDS };

lua_State *state_of(Kind kind, const hak_options *options)
{
    lua_State *L = kind == LABELLED || kind == BOTH || kind == EXACT
                       ? hak_lua_newstate_labelled(nullptr, options)
                       : hak_lua_newstate(options);
    REQUIRE(L != nullptr);
    luaL_openlibs(L);
    if (kind == LIMITED || kind == BOTH) REQUIRE(hak_lua_limit(L, 0, 64 << 20) == 0);
    if (kind == SAMPLED) REQUIRE(profile(L, HAK_LUA_PROFILE_SAMPLED) == 0);
    if (kind == EXACT) REQUIRE(profile(L, HAK_LUA_PROFILE_EXACT) == 0);
    if (kind == LINES) profile(L, HAK_LUA_PROFILE_LINES); // not on every platform
    return L;
}

void both_work(lua_State *L, lua_State *other)
{
    CHECK(run(other, WORK) == "1000");
    CHECK(run(L, WORK) == "1000");
    CHECK(run(other, "collectgarbage() return 'ok'") == "ok");
    CHECK(hak_ctx_check(hak_lua_context(other), nullptr, nullptr));
}

size_t tables(lua_State *L)
{
    hak_label_info all[HAK_LABELS_MAX + 1];
    const int count = hak_labels_stats(hak_lua_context(L), all, HAK_LABELS_MAX + 1);
    for (int i = 0; i < count; i++)
        if (all[i].name != nullptr && std::string(all[i].name) == "table") return all[i].live_bytes;
    return 0;
}

} // namespace

TEST_CASE("a state beside another keeps its lua_Alloc when labels are switched")
{
    const bool by_other = GENERATE(false, true);
    CAPTURE(by_other);
    Counted counted;
    lua_State *L = state_of(LABELLED, &counted.options), *other = beside(L);
    lua_State *switches = by_other ? other : L;
    for (int n = 0; n < 3; n++) {
        CHECK(hak_lua_labels(switches, false) == 0);
        both_work(L, other);
        CHECK(hak_lua_labels(switches, true) == 0);
        both_work(L, other);
    }
    lua_close(other);
    lua_close(L);
    CHECK(counted.used() == 0);
}

TEST_CASE("labels that are off stay off where a profile runs")
{
    lua_State *L = state_of(LABELLED, nullptr);
    REQUIRE(hak_lua_labels(L, false) == 0);
    run(L, "collectgarbage() kept = nil");
    const size_t before = tables(L);
    REQUIRE(profile(L, HAK_LUA_PROFILE_EXACT) == 0);
    CHECK(run(L, "kept = {} for i = 1, 1000 do kept[i] = {} end return #kept") == "1000");
    CHECK(tables(L) <= before);
    CHECK(run(L, "kept = nil collectgarbage() return 'ok'") == "ok");
    REQUIRE(hak_lua_labels(L, true) == 0);
    CHECK(run(L, "kept = {} for i = 1, 1000 do kept[i] = {} end return #kept") == "1000");
    CHECK(tables(L) > before + 10000);
    lua_close(L);
}

TEST_CASE("a state outlives the one with whose lua_Alloc it was made on the same thread")
{
    const auto kind = (Kind)GENERATE(range(0, (int)KINDS));
    CAPTURE(kind);
    const ContextStays stays;
    Counted counted;
    lua_State *L = state_of(kind, &counted.options), *other = beside(L);
    both_work(L, other);
    CHECK(hak_lua_drop(L) == -1);
    lua_close(L);
    CHECK(counted.used() > 0);
    CHECK(run(other, WORK) == "1000");
    CHECK(hak_lua_limit(other, 1 << 20, 64 << 20) == -1); // there is nothing to hurry
    CHECK(hak_lua_limit(other, 0, 64 << 20) == 0);
    CHECK(run(other, "return pcall(string.rep, 'x', 1e8)") == "false");
    CHECK(run(other, WORK) == "1000");
    CHECK(profile(other, HAK_LUA_PROFILE_SAMPLED) == -1);
    CHECK(hak_lua_labels(other, false) == 0);
    CHECK(run(other, WORK) == "1000");
    CHECK(hak_lua_labels(other, true) == 0);
    CHECK(run(other, WORK) == "1000");
    lua_State *third = beside(other);
    lua_close(other);
    CHECK(run(third, WORK) == "1000");
    CHECK(hak_lua_close(third) == 0); // the context stays
}

TEST_CASE("an adopted state ends before the one beside it")
{
    lua_State *L = luaL_newstate();
    REQUIRE(L != nullptr);
    luaL_openlibs(L);
    lua_pushcfunction(L, luaopen_hakmem);
    REQUIRE(lua_pcall(L, 0, 0, 0) == LUA_OK);
    REQUIRE(hak_lua_context(L) != nullptr);
    lua_State *other = beside(L);
    both_work(L, other);
    lua_close(L);
    CHECK(run(other, WORK) == "1000");
    lua_close(other);
}

#if LUA_VERSION_NUM == 501

// What was freed stays, and is nothing any more.
static void *scribble(void *, void *ptr, size_t osize, size_t nsize)
{
    void *p = nsize != 0 ? std::calloc(1, nsize) : nullptr;
    if (p != nullptr && ptr != nullptr) std::memcpy(p, ptr, osize < nsize ? osize : nsize);
    if (ptr != nullptr) std::memset(ptr, 0xa5, osize);
    return p;
}

TEST_CASE("a state that was adopted in a coroutine ends before the one beside it")
{
    const ContextStays stays; // scribble frees nothing
    lua_State *L = new_state(scribble, nullptr);
    REQUIRE(L != nullptr);
    luaL_openlibs(L);
    lua_pushcfunction(L, luaopen_hakmem_adopt);
    REQUIRE(lua_pcall(L, 0, 1, 0) == LUA_OK);
    lua_setglobal(L, "adopt");
    REQUIRE(run(L, "coroutine.wrap(function() adopt { limit = 0 } end)() return 'ok'") == "ok");
    REQUIRE(hak_lua_context(L) != nullptr);
    lua_State *other = beside(L);
    both_work(L, other);
    REQUIRE(hak_lua_limit(L, 0, 64 << 20) == 0);
    lua_close(L);
    run(other, "return pcall(string.rep, 'x', 1e8)");
    CHECK(run(other, "local t = {} for i = 1, 1e7 do t[i] = { i } end") != "nil");
    lua_gc(other, LUA_GCCOLLECT, 0);
    CHECK(run(other, WORK) == "1000");
    lua_close(other);
}
#endif

TEST_CASE("a limit that is set, lifted and reached leaves the state beside whole")
{
    const auto kind = (Kind)GENERATE(OWN, LABELLED, EXACT);
    const bool by_other = GENERATE(false, true);
    CAPTURE(kind, by_other);
    Counted counted;
    lua_State *L = state_of(kind, &counted.options), *other = beside(L);
    lua_State *limits = by_other ? other : L;
    for (int n = 0; n < 2; n++) {
        for (lua_State *fills : {L, other})
            REQUIRE(run(fills, "kept = {} return 1") == "1");
        CHECK(hak_lua_limit(limits, 1 << 20, 8 << 20) == 0);
        for (lua_State *fills : {L, other}) {
            // LuaJIT has no memory for more than the error, where nothing hurries its collector
            const std::string end =
                run(fills, "local ok, why = pcall(function() for i = 1, 1e7 do kept[i] = { i } end end)\n"
                           "return why");
            CHECK(end.find("not enough memory") != std::string::npos);
            CHECK(stats_of(L).committed_bytes <= 8 << 20);
            lua_pushnil(fills);
            lua_setglobal(fills, "kept");
            lua_gc(fills, LUA_GCCOLLECT, 0);
        }
        CHECK(hak_lua_limit(limits, 0, 0) == 0);
        both_work(L, other);
    }
    lua_close(other);
    lua_close(L);
    CHECK(counted.used() == 0);
}

TEST_CASE("a profile is that of the state that came first")
{
    const auto kind = (Kind)GENERATE(OWN, LABELLED);
    const auto mode = (hak_lua_profile_mode)GENERATE(range(0, 3));
    CAPTURE(kind, mode);
    Counted counted;
    lua_State *L = state_of(kind, &counted.options);
    if (profile(L, mode) != 0) {
        lua_close(L); // not on every platform
        return;
    }
    lua_State *other = beside(L);
    both_work(L, other);
    CHECK(profile(other, mode) == -1);
    CHECK(hak_lua_profile_stop(other) == -1);
    CHECK(hak_lua_profile_stop(L) == 0);
    both_work(L, other);
    // a lua_Alloc that is not noted in a profile may be about, and one that counts by line
    CHECK(profile(other, HAK_LUA_PROFILE_SAMPLED) == -1);
    CHECK(profile(L, HAK_LUA_PROFILE_EXACT) == -1);
    CHECK(profile(L, HAK_LUA_PROFILE_LINES) == -1);
    CHECK(profile(L, HAK_LUA_PROFILE_SAMPLED) == (mode == HAK_LUA_PROFILE_LINES ? -1 : 0));
    both_work(L, other);
    lua_close(other);
    both_work(L, L);
    lua_close(L);
    CHECK(counted.used() == 0);
}

#ifndef _WIN32 // where no state can be looked at
TEST_CASE("what shows a state while it runs is begun by the state that came first")
{
    char why[256] = "";
    lua_State *L = state_of(OWN, nullptr), *other = beside(L);
    CHECK(hak_lua_live_start(other, "/nowhere/socket", why, sizeof why) == -1);
    CHECK(std::string(why).find("lua_Alloc") != std::string::npos);
    lua_close(L);
    CHECK(hak_lua_live_start(other, "/nowhere/socket", why, sizeof why) == -1);
    CHECK(std::string(why).find("lua_Alloc") != std::string::npos);
    lua_close(other);
}
#endif

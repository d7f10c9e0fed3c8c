// States that are made with the lua_Alloc of another state, by threads of their own and by the same one.
#include "crew.h"
#include "lua_test.h"

#include <atomic>
#include <cstdlib>
#include <thread>

using namespace test;

namespace
{

// Makes garbage and keeps some of it; what is kept is told.
constexpr const char *WORK = "local t = {}\n"
                             "for r = 1, 20 do for i = 1, 2000 do\n"
                             "  t[i] = { i, tostring(i * r), ('x'):rep(i % 300) }\n"
                             "end end\n"
                             "return #t";

// As modules for threads do.
lua_State *beside(lua_State *L)
{
    void *ud;
    const lua_Alloc f = lua_getallocf(L, &ud);
    return new_state(f, ud);
}

std::string work_beside(lua_State *L)
{
    lua_State *other = beside(L);
    if (other == nullptr) return "none";
    luaL_openlibs(other);
    std::string result = run(other, WORK);
    lua_close(other);
    return result;
}

template <class Work>
void on_a_thread(Work work)
{
    std::thread(work).join();
}

// A state of each kind of lua_Alloc.
enum Kind { OWN, LABELLED, LIMITED, BOTH, SAMPLED, EXACT, KINDS };

lua_State *state_of(Kind kind, const hak_options *options)
{
    lua_State *L = kind == LABELLED || kind == BOTH || kind == EXACT
                       ? hak_lua_newstate_labelled(nullptr, options)
                       : hak_lua_newstate(options);
    REQUIRE(L != nullptr);
    luaL_openlibs(L);
    if (kind == LIMITED || kind == BOTH) REQUIRE(hak_lua_limit(L, 0, 64 << 20) == 0);
    if (kind == SAMPLED || kind == EXACT) {
        hak_lua_profile_options profile = HAK_LUA_PROFILE_OPTIONS_INIT;
        profile.mode = kind == EXACT ? HAK_LUA_PROFILE_EXACT : HAK_LUA_PROFILE_SAMPLED;
        REQUIRE(hak_lua_profile_start(L, &profile) == 0);
    }
    return L;
}

struct Shared : Counted {
    Shared()
    {
        options.shared = true;
    }
};

} // namespace

TEST_CASE("a state of another thread is refused in a heap that is one thread's alone")
{
    const auto kind = (Kind)GENERATE(range(0, (int)KINDS));
    CAPTURE(kind);
    Counted counted;
    lua_State *L = state_of(kind, &counted.options);
    const size_t blocks = live_blocks(hak_lua_context(L));
    std::string there;
    on_a_thread([&] { there = work_beside(L); });
    CHECK(there == "none");
    CHECK(live_blocks(hak_lua_context(L)) == blocks);
    CHECK(work_beside(L) == "2000"); // on its own thread
    CHECK(run(L, WORK) == "2000");
    lua_close(L);
    CHECK(counted.used() == 0);
}

TEST_CASE("a state that moves to another thread may have others beside it there")
{
    const auto kind = (Kind)GENERATE(range(0, (int)KINDS));
    CAPTURE(kind);
    lua_State *L = state_of(kind, nullptr);
    std::string moved, there, here;
    on_a_thread([&] {
        moved = run(L, "local s = ('x'):rep(9000) return #s");
        there = work_beside(L);
    });
    here = work_beside(L); // nothing has shown that it came back
    CHECK(moved == "9000");
    CHECK(there == "2000");
    CHECK(here == "none");
    CHECK(run(L, "local s = ('y'):rep(9000) return #s") == "9000"); // another string
    CHECK(run(L,
              "local all = {} for i = 1, 100 do all[i] = coroutine.create(function() end) end return #all") ==
          "100");
    CHECK(work_beside(L) == "2000");
    lua_close(L);
}

TEST_CASE("states of all threads share a context that is shared")
{
    const bool labels = GENERATE(true, false);
    Shared shared;
    lua_State *L =
        labels ? hak_lua_newstate_labelled(nullptr, &shared.options) : hak_lua_newstate(&shared.options);
    REQUIRE(L != nullptr);
    luaL_openlibs(L);
    hak_ctx *ctx = hak_lua_context(L);
    std::string results[3];
    {
        Crew crew(3, [&](size_t i) {
            for (int n = 0; n < 3; n++)
                results[i] = work_beside(L);
        });
        CHECK(run(L, WORK) == "2000");
        CHECK(crew.join().empty());
    }
    for (const std::string &result : results)
        CHECK(result == "2000");
    hak_label_info all[HAK_LABELS_MAX + 1];
    const int count = hak_labels_stats(ctx, all, HAK_LABELS_MAX + 1);
    size_t sum = 0, tables = 0;
    for (int i = 0; i < count; i++) {
        sum += all[i].live_bytes;
        if (all[i].name != nullptr && std::string(all[i].name) == "table") tables = all[i].live_bytes;
    }
    CHECK(sum == stats_of(ctx).live_bytes);
    CHECK((tables > 2000) == labels);
    CHECK(hak_ctx_check(ctx, nullptr, nullptr));
    lua_close(L);
    CHECK(shared.used() == 0);
}

TEST_CASE("labels of a shared context are switched while others use them")
{
    Shared shared;
    lua_State *L = hak_lua_newstate_labelled(nullptr, &shared.options);
    luaL_openlibs(L);
    lua_State *other = beside(L);
    REQUIRE(other != nullptr);
    luaL_openlibs(other);
    CHECK(hak_lua_labels(L, false) == 0);
    CHECK(run(other, WORK) == "2000");
    CHECK(run(L, WORK) == "2000");
    CHECK(hak_lua_labels(L, true) == 0);
    CHECK(run(L, WORK) == "2000");
    lua_close(other);
    lua_close(L);
    CHECK(shared.used() == 0);
}

TEST_CASE("a state outlives the one with whose lua_Alloc it was made")
{
    Shared shared;
    lua_State *L = state_of(OWN, &shared.options);
    lua_State *other = beside(L);
    REQUIRE(other != nullptr);
    luaL_openlibs(other);
    CHECK(hak_lua_drop(L) == -1);
    lua_close(L);
    CHECK(shared.used() > 0);
    std::string there;
    on_a_thread([&] { there = run(other, WORK); });
    CHECK(there == "2000");
    lua_close(other); // the context stays
}

TEST_CASE("a shared context alone is destroyed and dropped as others are")
{
    Shared shared;
    CHECK(hak_lua_close(state_of(LABELLED, &shared.options)) == 0);
    CHECK(shared.used() == 0);
    CHECK(hak_lua_drop(state_of(LABELLED, &shared.options)) == 0);
    CHECK(shared.used() == 0);
    hak_ctx *ctx = hak_ctx_new(nullptr, &shared.options);
    lua_State *L = new_state(hak_lua_alloc, ctx);
    CHECK(hak_lua_labels(L, true) == 0);
    CHECK(work_beside(L) == "2000");
    lua_close(L);
    hak_ctx_flush(ctx);
    hak_ctx_destroy(ctx);
    CHECK(shared.used() == 0);
}

TEST_CASE("the limit of a shared context is that of all its states together")
{
    const size_t limit = 8 << 20;
    Shared shared;
    lua_State *L = state_of(LABELLED, &shared.options);
    REQUIRE(hak_lua_limit(L, 1 << 20, limit) == -1); // nothing would hurry
    REQUIRE(hak_lua_limit(L, 0, limit) == 0);
    hak_lua_profile_options profile = HAK_LUA_PROFILE_OPTIONS_INIT;
    CHECK(hak_lua_profile_start(L, &profile) == -1);
    size_t most = 0;
    std::string results[2];
    std::atomic<int> ready{0};
    {
        Crew crew(2, [&](size_t i) {
            lua_State *other = beside(L);
            expect(other != nullptr, "a state");
            expect(open_libraries(other) == LUA_OK, "libraries");
            // One state alone could have taken the limit before the other one has libraries.
            ready++;
            while (ready < 2)
                std::this_thread::yield();
            results[i] =
                run(other,
                    "local ok, why = pcall(function() local t = {} for i = 1, 1e7 do t[i] = { i } end end)\n"
                    "collectgarbage() return tostring(ok) .. tostring(why)");
            lua_close(other);
        });
        for (int i = 0; i < 100; i++) {
            const size_t now = stats_of(L).committed_bytes;
            if (now > most) most = now;
            std::this_thread::yield();
        }
        CHECK(crew.join().empty());
    }
    for (const std::string &result : results) {
        CHECK(result.substr(0, 5) == "false");
        CHECK(result.find("not enough memory") != std::string::npos);
    }
    CHECK(most <= limit);
    CHECK(stats_of(L).failures > 0);
    lua_close(L);
    CHECK(shared.used() == 0);
}

static lua_State *other; // of the test below

TEST_CASE("hakmem.label in a shared context is for the thread that calls it")
{
    Shared shared;
    lua_State *L = state_of(LABELLED, &shared.options);
    lua_pushcfunction(L, luaopen_hakmem);
    lua_setglobal(L, "open");
    lua_pushlightuserdata(L, L);
    lua_pushcclosure(
        L,
        [](lua_State *state) {
            auto *first = (lua_State *)lua_touserdata(state, lua_upvalueindex(1));
            on_a_thread([&] {
                other = beside(first);
                luaL_openlibs(other);
                run(other, "kept = {} for i = 1, 5000 do kept[i] = { i } end");
            });
            return 0;
        },
        1);
    lua_setglobal(L, "elsewhere");
    CHECK(run(L, "local h = open()\n"
                 "h.label('mine', function() kept = {} for i = 1, 100 do kept[i] = {} end elsewhere() end)\n"
                 "local n = h.labels().mine.live_blocks\n"
                 "return n > 100 and n < 150") == "true");
    REQUIRE(other != nullptr);
    CHECK(live_blocks(hak_lua_context(L)) > 5000);
    lua_close(other);
    lua_close(L);
    CHECK(shared.used() == 0);
}

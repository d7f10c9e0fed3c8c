// Making and ending states.
#include "lua_test.h"

#include <hakmem/tuning.h>

#include <csignal>
#include <cstddef>
#include <cstring>
#include <pthread.h>
#ifndef _WIN32
#include <sys/wait.h>
#endif

using namespace test;

TEST_CASE("a state takes its context with it")
{
    Counted counted;
    lua_State *L = hak_lua_newstate(&counted.options);
    REQUIRE(L != nullptr);
    luaL_openlibs(L);
    CHECK(run_file(L, "whole.lua") == WHOLE_RESULT);
    CHECK(counted.used() > 0);
    lua_close(L);
    CHECK(counted.used() == 0);
}

TEST_CASE("options of contexts may come from another version of the header")
{
    Counted counted;
    alignas(hak_options) unsigned char bytes[sizeof(hak_options) + 64] = {};
    auto *options = reinterpret_cast<hak_options *>(bytes);
    memcpy(bytes, &counted.options, sizeof counted.options);
    bool taken = true;
    SECTION("an older one ends behind the quota")
    {
        options->size = offsetof(hak_options, quota) + sizeof options->quota;
        memset(bytes + options->size, 0xff, sizeof bytes - options->size);
    }
    SECTION("a newer one has more, which is not set")
    {
        options->size = sizeof bytes;
    }
    SECTION("a newer one has more, which is set")
    {
        options->size = sizeof bytes;
        bytes[sizeof bytes - 1] = 1;
        taken = false;
    }
    SECTION("no size")
    {
        options->size = 0;
        taken = false;
    }
    for (bool labelled : {false, true}) {
        CAPTURE(labelled);
        lua_State *L = labelled ? hak_lua_newstate_labelled(nullptr, options) : hak_lua_newstate(options);
        REQUIRE((L != nullptr) == taken);
        CHECK((counted.used() > 0) == taken);
        if (L != nullptr) REQUIRE(hak_lua_close(L) == 0);
        CHECK(counted.used() == 0);
    }
}

TEST_CASE("hak_lua_close ends a state, and a state of the caller's context leaves that empty")
{
    Counted counted;
    SECTION("own context")
    {
        lua_State *L = hak_lua_newstate(&counted.options);
        CHECK(hak_lua_close(L) == 0);
    }
    SECTION("the caller's, with limit and labels")
    {
        hak_ctx *ctx = hak_ctx_new(nullptr, &counted.options);
        lua_State *L = new_state(hak_lua_alloc, ctx);
        luaL_openlibs(L);
        REQUIRE(hak_lua_labels(L, true) == 0);
        REQUIRE(hak_lua_limit(L, 0, 8 << 20) == 0);
        CHECK(hak_lua_context(L) == ctx);
        CHECK(run_file(L, "whole.lua") == WHOLE_RESULT);
        CHECK(hak_lua_close(L) == 0);
        CHECK(live_blocks(ctx) == 0);
        hak_ctx_destroy(ctx);
    }
    CHECK(counted.used() == 0);
}

TEST_CASE("large blocks of a state go back to its space at once, unless the options keep them")
{
    hak_options options = HAK_OPTIONS_INIT;
    hak_tuning tuning = HAK_TUNING_INIT;
    options.tuning = &tuning;
    tuning.packed_bytes = HAK_NONE;
    auto keeps = [&options] {
        lua_State *L = hak_lua_newstate(&options);
        REQUIRE(L != nullptr);
        hak_ctx *ctx = hak_lua_context(L);
        auto committed = [ctx] {
            hak_stats stats;
            stats.size = sizeof stats;
            REQUIRE(hak_ctx_stats(ctx, &stats) == 0);
            return stats.committed_bytes;
        };
        hak_free(ctx, hak_alloc(ctx, 20000)); // the class is open
        hak_ctx_flush(ctx);
        size_t before = committed();
        hak_free(ctx, hak_alloc(ctx, 20000));
        bool kept = committed() > before;
        lua_close(L);
        return kept;
    };
    CHECK_FALSE(keeps());
    tuning.magazine_most = 32 << 10;
    CHECK(keeps());
    tuning.magazine_most = 0;
    options.mode = HAK_MODE_FAST;
    CHECK(keeps());
}

TEST_CASE("states of one space are apart")
{
    hak_space *space = hak_space_new(nullptr);
    Counted counted;
    lua_State *states[20];
    for (int i = 0; i < 20; i++) {
        states[i] = hak_lua_newstate_in(space, &counted.options);
        REQUIRE(states[i] != nullptr);
        luaL_openlibs(states[i]);
        run(states[i], "x = " + std::to_string(i));
    }
    CHECK(hak_ctx_of(space, states[7]) == hak_lua_context(states[7]));
    for (int i = 0; i < 20; i += 2)
        lua_close(states[i]);
    for (int i = 1; i < 20; i += 2) {
        CHECK(run(states[i], "return x") == std::to_string(i));
        CHECK(run_file(states[i], "whole.lua") == WHOLE_RESULT);
        lua_close(states[i]);
    }
    CHECK(counted.used() == 0);
    hak_space_delete(space);
}

TEST_CASE("a state with another allocator is not ours")
{
    lua_State *L = luaL_newstate();
    CHECK(hak_lua_context(L) == nullptr);
    CHECK(hak_lua_limit(L, 0, 1 << 20) == -1);
    CHECK(hak_lua_labels(L, true) == -1);
    CHECK(hak_lua_labels(L, false) == -1);
    CHECK(hak_lua_trim(L) == 0);
    CHECK(hak_lua_report(L, stderr) == -1);
    CHECK(hak_lua_drop(L) == -1);
    CHECK(hak_lua_close(L) == -1);
    lua_close(L);
}

TEST_CASE("broken options make no state")
{
    hak_options options = HAK_OPTIONS_INIT;
    hak_tuning tuning = HAK_TUNING_INIT;
    options.tuning = &tuning;
    SECTION("a number out of range")
    {
        tuning.magazine = 1000;
    }
    SECTION("a tuning without size")
    {
        tuning.size = 0;
    }
    REQUIRE(hak_options_error(&options) != nullptr);
    CHECK(hak_lua_newstate(&options) == nullptr);
    CHECK(hak_lua_newstate_labelled(nullptr, &options) == nullptr);
}

TEST_CASE("labels are switched with the allocator")
{
    lua_State *L = hak_lua_newstate(nullptr);
    luaL_openlibs(L);
    auto unlabelled = [L] {
        hak_label_info info;
        REQUIRE(hak_label_stats(hak_lua_context(L), 0, &info) == 0);
        return info.live_blocks;
    };
    void *ud;
    lua_Alloc off = lua_getallocf(L, &ud);
    run(L, "a = {} for i = 1, 1000 do a[i] = {} end");
    size_t before = unlabelled();
    CHECK(before > 1000);

    REQUIRE(hak_lua_labels(L, true) == 0);
    CHECK(lua_getallocf(L, &ud) != off);
    run(L, "b = {} for i = 1, 1000 do b[i] = {} end");
    CHECK(unlabelled() <= before);
    CHECK(stats_of(L).live_blocks > before + 1000);

    REQUIRE(hak_lua_labels(L, false) == 0);
    CHECK(lua_getallocf(L, &ud) == off);
    run(L, "c = {} for i = 1, 1000 do c[i] = {} end");
    CHECK(unlabelled() > before + 900);
    lua_close(L);
}

TEST_CASE("trim collects and gives back")
{
    lua_State *L = hak_lua_newstate(nullptr);
    luaL_openlibs(L);
    run(L, "t = {} for i = 1, 200000 do t[i] = { i } end t = nil");
    size_t live = stats_of(L).live_bytes;
    CHECK(hak_lua_trim(L) > 4 << 20);
    CHECK(stats_of(L).live_bytes < live / 4);
    CHECK(run(L, "return 1 + 1") == "2");
    lua_close(L);
}

namespace
{

// Machine code, errors through C, coroutines, a big string: what a drop leaves behind if it leaves anything.
const char *const BUSY = "local function f(n) local s = 0 for i = 1, n do s = s + i % 7 end return s end "
                         "local t = {} for i = 1, 50 do t[i] = f(100) end "
                         "big = string.rep(string.rep('x', 1000), 1200) "
                         "for i = 1, 20 do pcall(error, i) end "
                         "co = coroutine.wrap(function() coroutine.yield(1) end) co() "
                         "return #t";

size_t growth_of_loop(int count, void (*end)(lua_State *), hak_space *space, const hak_options *options)
{
    size_t start = 0;
    for (int i = 0; i < count; i++) {
        lua_State *L = hak_lua_newstate_in(space, options);
        luaL_openlibs(L);
        if (run(L, BUSY) != "50") FAIL("the program failed");
        end(L);
        if (i == 99) start = resident();
    }
    size_t now = resident();
    return now > start ? now - start : 0;
}

} // namespace

TEST_CASE("a thousand dropped states leave nothing")
{
    Counted counted;
    [[maybe_unused]] size_t growth = 0;
    auto drop = [](lua_State *L) { REQUIRE(hak_lua_drop(L) == 0); };
    SECTION("each in a space of its own")
    {
        growth = growth_of_loop(1000, drop, nullptr, &counted.options);
    }
    SECTION("in one space")
    {
        hak_space *space = hak_space_new(nullptr);
        growth = growth_of_loop(1000, drop, space, &counted.options);
        hak_space_delete(space);
    }
    SECTION("closed")
    {
        growth = growth_of_loop(
            300, [](lua_State *L) { lua_close(L); }, nullptr, &counted.options);
    }
    CHECK(counted.used() == 0);
#ifndef __SANITIZE_ADDRESS__ // keeps what is freed
    CHECK(growth < 1 << 20);
#endif
}

TEST_CASE("drop runs no finalizer")
{
    lua_State *L = hak_lua_newstate(nullptr);
    luaL_openlibs(L);
    static int finalized;
    finalized = 0;
    lua_newuserdata(L, 8);
    lua_newtable(L);
    lua_pushcfunction(L, [](lua_State *) { return 0 * ++finalized; });
    lua_setfield(L, -2, "__gc");
    lua_setmetatable(L, -2);
    SECTION("drop")
    {
        CHECK(hak_lua_drop(L) == 0);
        CHECK(finalized == 0);
    }
    SECTION("close")
    {
        CHECK(hak_lua_close(L) == 0);
        CHECK(finalized == 1);
    }
}

TEST_CASE("drop takes the caller's context")
{
    Counted counted;
    hak_ctx *ctx = hak_ctx_new(nullptr, &counted.options);
    lua_State *L = new_state(hak_lua_alloc, ctx);
    luaL_openlibs(L);
    CHECK(counted.used() > 0);
    CHECK(hak_lua_drop(L) == 0);
    CHECK(counted.used() == 0);
}

#ifndef _WIN32 // there are no forks

extern "C" void *fail_unprotected(void *)
{
    lua_State *L = hak_lua_newstate(nullptr);
    lua_pushstring(L, "this one");
    lua_error(L);
    return nullptr;
}

TEST_CASE("an error outside pcall tells what it was before it ends the process")
{
    int fds[2];
    REQUIRE(pipe(fds) == 0);
    pid_t child = fork();
    if (child == 0) {
        dup2(fds[1], 2);
        signal(SIGABRT, SIG_DFL);
        // on a stack of its own: LuaJIT would find the handlers of the test program in this one
        pthread_t thread;
        pthread_create(&thread, nullptr, fail_unprotected, nullptr);
        pthread_join(thread, nullptr);
        _exit(0);
    }
    close(fds[1]);
    char text[200] = "";
    ssize_t n = read(fds[0], text, sizeof text - 1);
    close(fds[0]);
    int status;
    waitpid(child, &status, 0);
    CHECK(n > 0);
    CHECK(std::string(text).find("PANIC: unprotected error in call to Lua API (this one)") == 0);
    CHECK(!(WIFEXITED(status) && WEXITSTATUS(status) == 0));
}

#endif

// How much of a thread's stack the binding takes, beside what Lua takes itself: hosts run coroutines on small
// ones.
#include "lua_test.h"

#include <hakmem/profile.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <pthread.h>
#include <sys/mman.h>

using namespace test;

namespace
{

enum { STACK = 256 << 10, PAINT = 0xA5 };

// Bytes of its stack that a thread touches, from the end down.
size_t touched(const std::function<void()> &work)
{
    void *p = mmap(nullptr, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    REQUIRE(p != MAP_FAILED);
    auto *stack = static_cast<unsigned char *>(p);
    std::memset(stack, PAINT, STACK);
    pthread_attr_t attr;
    pthread_t thread;
    REQUIRE(pthread_attr_init(&attr) == 0);
    REQUIRE(pthread_attr_setstack(&attr, stack, STACK) == 0);
    REQUIRE(pthread_create(
                &thread, &attr,
                [](void *user) -> void * {
                    (*static_cast<const std::function<void()> *>(user))();
                    return nullptr;
                },
                const_cast<std::function<void()> *>(&work)) == 0);
    REQUIRE(pthread_join(thread, nullptr) == 0);
    pthread_attr_destroy(&attr);
    size_t clean = 0;
    while (clean < STACK && stack[clean] == PAINT)
        clean++;
    munmap(stack, STACK);
    return STACK - clean;
}

void *stock_alloc(void *, void *p, size_t, size_t n)
{
    if (n) return std::realloc(p, n);
    std::free(p);
    return nullptr;
}

const char WORK[] = "local kept = {} "
                    "local function grow(n) for i = 1, n do kept[i % 50] = {i, n = 'key' .. i} end end "
                    "local co = coroutine.wrap(function() while true do grow(500) coroutine.yield() end end) "
                    "return function() "
                    "  grow(2000) co() "
                    "  kept[1] = function() return kept end "
                    "  local long = {} for i = 1, 5000 do long[i] = i end "
                    "  tested(2000) collectgarbage() "
                    "end";

// A string that is made before tests of a constant: LuaJIT compiles those to nothing, and who looks for the line of
// the string in its trace meets them all.
std::string tested()
{
    std::string code = "local text, last = tostring "
                       "local function tested(n) local off = false for i = 1, n do local s = text(i * 3) ";
    for (int i = 0; i < 100; i++)
        code += "if off then n = n + 1 end ";
    return code + "last = s end return last end ";
}

// What the chunk touches on a thread, once everything is loaded and learnt.
size_t touched_by(lua_State *L)
{
    REQUIRE(open_libraries(L) == LUA_OK);
    REQUIRE(luaL_loadstring(L, (tested() + WORK).c_str()) == LUA_OK);
    REQUIRE(lua_pcall(L, 0, 1, 0) == LUA_OK);
    bool ok = true;
    auto call = [&] {
        lua_pushvalue(L, -1);
        ok = lua_pcall(L, 0, 0, 0) == LUA_OK && ok;
    };
    call();
    touched(call);
    const size_t bytes = touched(call);
    REQUIRE(ok);
    return bytes;
}

} // namespace

#ifndef __SANITIZE_ADDRESS__ // its frames are larger
TEST_CASE("the binding takes little of a small stack", "[stack]")
{
    lua_State *stock = new_state(stock_alloc, nullptr);
    REQUIRE(stock != nullptr);
    const size_t least = touched_by(stock);
    lua_close(stock);

    std::string all = "stock " + std::to_string(least);
    size_t most = 0;
    for (int how = 0; how < 6; how++) {
        lua_State *L = how == 0 ? hak_lua_newstate(nullptr) : hak_lua_newstate_labelled(nullptr, nullptr);
        REQUIRE(L != nullptr);
        if (how >= 2) REQUIRE(hak_lua_limit(L, 0, how == 5 ? 2 << 20 : 64 << 20) == 0);
        hak_lua_profile_options options = HAK_LUA_PROFILE_OPTIONS_INIT;
        options.mode = how == 4 ? HAK_LUA_PROFILE_EXACT : HAK_LUA_PROFILE_SAMPLED;
        options.mean = how == 4 ? 0 : 1024;
        INFO(how);
        if (how >= 3) REQUIRE(hak_lua_profile_start(L, &options) == 0);
        const size_t bytes = touched_by(L);
        const char *const names[] = {"plain", "labels", "limit", "sampled", "exact", "full"};
        all += std::string(", ") + names[how] + " " + std::to_string(bytes);
        most = std::max(most, bytes);
        hak_lua_limit(L, 0, 0);
        REQUIRE(hak_lua_close(L) == 0);
    }
    INFO(all);
    CHECK(most <= least + 4 * 1024);
    if (std::getenv("STACKS")) WARN(all); // for the figures in docs/guide/lua.md
}
#endif

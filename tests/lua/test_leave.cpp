// Finalizers that are refused memory, with loops in compiled code around them: their errors are caught.
#include "lua_test.h"

using namespace test;

#ifdef HKL_LUAJIT

namespace
{

// One object whose finalizer wants more than there is, and a loop that brings the collector to it.
const char *const ONE =
    "local o = newproxy(true) "
    "getmetatable(o).__gc = function() local t = {} for i = 1, 1e6 do t[i] = { i } end end "
    "o = nil "
    "local function fill() local t = {} for i = 1, 1e7 do t[i] = { i } end end "
    "return pcall(fill)";

// Objects without end, each of whose finalizers wants a part of what there is, beside garbage.
const char *const MANY = "local kept = {} "
                         "local function object(n) local o = newproxy(true) "
                         "  getmetatable(o).__gc = function() "
                         "    for i = 1, n do kept[#kept + 1] = { i } end end end "
                         "local function round(n) for i = 1, n do local t = { i, { i } } "
                         "  if i % 97 == 0 then object(i % 11 * 40) end end end "
                         "for i = 1, 400 do local ok, e = pcall(round, 500) "
                         "  if not ok then kept = {} pcall(collectgarbage) "
                         "    if not tostring(e):find('not enough memory') then return e end end end "
                         "return true";

// What errors in finalizers are of besides memory.
const char *const FAILS = "local function object() local o = newproxy(true) "
                          "  getmetatable(o).__gc = function() error('final', 0) end end "
                          "local function round(n) for i = 1, n do local t = { i, { i } } "
                          "  if i % 97 == 0 then object() end end end "
                          "for i = 1, 200 do local ok, e = pcall(round, 2000) "
                          "  if not ok and e ~= 'final' then return e end end "
                          "return true";

std::string under(size_t more, int speed, const char *code, bool labels)
{
    lua_State *L = hak_lua_newstate(nullptr);
    REQUIRE(L != nullptr);
    luaL_openlibs(L);
    if (labels) REQUIRE(hak_lua_labels(L, true) == 0);
    if (speed != 0) lua_gc(L, LUA_GCSETSTEPMUL, speed);
    const size_t limit = stats_of(L).committed_bytes + more;
    REQUIRE(hak_lua_limit(L, 0, limit) == 0);
    run(L, code);
    lua_gc(L, LUA_GCSTOP, 0);
    CHECK(stats_of(L).peak_bytes <= limit);
    // Whatever the finalizers did, the state goes on, and compiles.
    hak_lua_limit(L, 0, 0);
    while (luaL_loadstring(L, "collectgarbage()") != 0 || lua_pcall(L, 0, 0, 0) != 0)
        lua_settop(L, 0);
    const std::string after =
        run(L, "jit.off() jit.on() jit.flush() local n = 0 for i = 1, 1000 do n = n + i end "
               "local util = require 'jit.util' "
               "return n == 500500 and util.traceinfo(1) ~= nil");
    lua_close(L);
    return after;
}

} // namespace

TEST_CASE("a finalizer that is refused memory where compiled code is left raises an error that is caught")
{
    const bool labels = GENERATE(false, true);
    for (size_t more = 300 << 10; more < 4300 << 10; more += 200 << 10) {
        CAPTURE(labels, more);
        CHECK(under(more, 0, ONE, labels) == "true");
    }
}

TEST_CASE("finalizers of many objects fail beside compiled code, at each speed of the collector")
{
    const int speed = GENERATE(0, 100, 256, 1000, 100000);
    for (const char *code : {MANY, FAILS}) {
        for (size_t more : {500 << 10, 900 << 10, 2 << 20, 8 << 20}) {
            CAPTURE(speed, code, more);
            CHECK(under(more, speed, code, false) == "true");
        }
    }
}

#endif

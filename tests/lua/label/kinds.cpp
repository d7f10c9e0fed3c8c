// Programs that allocate one kind of block: the growth is booked under its label.
#include "label_test.h"

using namespace test;

namespace
{

struct OneKind {
    const char *name;
    const char *label;
    double at_least; // share of the growth
    const char *code;
};

// `keep` has its slots already, so that it does not grow.
#define KEEP(n) "keep = {} for i = 1, " #n " do keep[i] = false end "

const OneKind programs[] = {
    // Of 31 bytes: 5.1 hashes only some bytes of longer ones, and gets slow. The rest is their index.
    {"strings", "string", 0.7,
     KEEP(100000) "return function() for i = 1, 100000 do keep[i] = 'a string with some text ' .. 1000000 + "
                  "i end end"},
    {"formatted strings", "string", 0.9,
     KEEP(5000) "return function() for i = 1, 5000 do keep[i] = ('%90d%90d%90d'):format(i, i, i) end end"},
    {"index of strings", "strtab", 0.15, "return function() for i = 1, 200000 do local s = 'n' .. i end end"},
    {"empty tables", "table", 0.95,
     KEEP(100000) "return function() for i = 1, 100000 do keep[i] = {} end end"},
    {"tables with an array", "array", 0.8,
     KEEP(20000) "local a = 1 return function() for i = 1, 20000 do keep[i] = "
                 "{a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a} end "
                 "end"},
    {"arrays that grow", "array", 0.95,
     KEEP(5000) "for i = 1, 5000 do keep[i] = {} end "
                "return function() for i = 1, 5000 do local t = keep[i] for j = 1, 100 do t[j] = j end end "
                "end"},
    {"one array that grows", "array", 0.99,
     "big = {} return function() for i = 1, 300000 do big[i] = i end end"},
    {"tables with fields", "hash", 0.55,
     KEEP(50000) "local a = 1 return function() for i = 1, 50000 do keep[i] = {x = a, y = a, z = a, u = a} "
                 "end end"},
    {"hashes that grow", "hash", 0.95,
     KEEP(5000) "local k = {} for i = 1, 5000 do keep[i] = {} end for i = 1, 60 do k[i] = 'key' .. i end "
                "return function() for i = 1, 5000 do local t = keep[i] for j = 1, 60 do t[k[j]] = j end end "
                "end"},
    {"closures", "closure", 0.4,
     KEEP(100000) "return function() for i = 1, 100000 do keep[i] = function() return i end end end"},
    {"upvalues", "upvalue", 0.4,
     KEEP(100000) "return function() for i = 1, 100000 do keep[i] = function() return i end end end"},
    {"coroutines", "stack", 0.6,
     KEEP(20000) "local function f() end "
                 "return function() for i = 1, 20000 do keep[i] = coroutine.create(f) end end"},
    {"coroutines themselves", "thread", 0.12,
     KEEP(20000) "local function f() end "
                 "return function() for i = 1, 20000 do keep[i] = coroutine.create(f) end end"},
    {"deep recursion", "stack", 0.95,
     "local function r(n) if n == 0 then coroutine.yield() return 0 end return 1 + r(n - 1) end "
     "return function() deep = coroutine.create(r) coroutine.resume(deep, 10000) end"},
    {"loaded chunks", "proto", 0.9,
     KEEP(500) "local s = {} for i = 1, 100 do s[i] = 'a = b * ' .. i .. ' + c' end s = table.concat(s, "
               "'\\n') "
               "local load = loadstring or load "
               "return function() for i = 1, 500 do keep[i] = load(s, '=?') end end"},
    {"loaded bytecode", "proto", 0.9,
     KEEP(500) "local s = {} for i = 1, 100 do s[i] = 'a = b * ' .. i .. ' + c' end s = table.concat(s, "
               "'\\n') "
               "local load = loadstring or load "
               "local code = string.dump(load(s, '=?')) "
               "return function() for i = 1, 500 do keep[i] = load(code, '=?') end end"},
#if LUA_VERSION_NUM < 502
    {"proxies", "userdata", 0.95,
     KEEP(50000) "return function() for i = 1, 50000 do keep[i] = newproxy() end end"},
#endif
#if LUA_VERSION_NUM < 503
    {"the buffer that joins strings", "buffer", 0.3,
     "local a = ('x'):rep(1000000) return function() big = a .. a .. a end"},
#endif
#ifdef HKL_LUAJIT
    {"the buffer that repeats strings", "buffer", 0.3, "return function() big = ('ab'):rep(3000000) end"},
    {"cdata arrays", "cdata", 0.95,
     KEEP(50000) "local t = require('ffi').typeof 'int[?]' "
                 "return function() for i = 1, 50000 do keep[i] = t(16) end end"},
    {"cdata structures", "cdata", 0.95,
     KEEP(50000) "local t = require('ffi').typeof 'struct {double x, y;}' "
                 "return function() for i = 1, 50000 do keep[i] = t(i, i) end end"},
    {"boxed integers", "cdata", 0.95,
     KEEP(50000) "return function() for i = 1, 50000 do keep[i] = 1LL + i end end"},
    {"C declarations", "cdata", 0.5,
     "local ffi, s = require 'ffi', {} "
     "for i = 1, 2000 do s[i] = 'struct s' .. i .. ' {int a; double b[' .. i .. '];};' end s = "
     "table.concat(s) "
     "return function() ffi.cdef(s) end"},
    {"traces", "trace", 0.6,
     "jit.flush() local f = {} "
     "for i = 1, 200 do "
     "  f[i] = loadstring('local x = 0 for i = 1, 200 do if i % 3 == 0 then x = x + ' .. i .. ' end end "
     "return x') "
     "end "
     "return function() for i = 1, 200 do f[i]() f[i]() end end"},
#endif
};

// The collector shrinks these at once, and traces go with their functions.
bool is_garbage(const std::string &label)
{
    return label == "buffer" || label == "strtab" || label == "trace";
}

int make_userdata(lua_State *L)
{
    lua_Integer n = luaL_checkinteger(L, 1);
    lua_createtable(L, (int)n, 0);
    for (int i = 1; i <= (int)n; i++) {
        lua_newuserdata(L, 100);
        lua_rawseti(L, -2, i);
    }
    return 1;
}

// Bytes under `label` when the running chunk calls look().
long long seen;
const char *looked_for;
int look(lua_State *L)
{
    long long now = label_bytes(L)[looked_for];
    seen = now > seen ? now : seen;
    return 0;
}

long long seen_while(lua_State *L, const char *label, const char *code)
{
    seen = 0;
    looked_for = label;
    lua_register(L, "look", look);
    REQUIRE(run(L, code) == "true");
    return seen;
}

} // namespace

TEST_CASE("growth is booked under the label of its kind")
{
#ifdef HKL_LUAJIT
    const std::vector<bool> modes = {false, true};
#else
    const std::vector<bool> modes = {false};
#endif
    for (const OneKind &program : programs) {
        for (bool compiled : modes) {
            LabelledState state;
            if (!compiled) run(state.L, "if jit then jit.off() end");
            Growth growth = growth_of(state.L, program.code, is_garbage(program.label));
            INFO(program.name << (compiled ? "" : ", no compiler") << ": " << growth.text());
            if (compiled || std::string(program.label) != "trace")
                CHECK(growth.share(program.label) >= program.at_least);
            CHECK(growth.share("other") < 0.01);
            CHECK(growth.share("") < 0.01);
        }
    }
}

TEST_CASE("userdata have their label")
{
    LabelledState state;
    lua_register(state.L, "make_userdata", make_userdata);
    Growth growth = growth_of(state.L, "return function() keep = make_userdata(20000) end");
    INFO(growth.text());
    CHECK(growth.share("userdata") >= 0.8);
    CHECK(growth.share("array") >= 0.05);
}

TEST_CASE("no compiler, no traces")
{
    LabelledState state;
    run(state.L, "if jit then jit.off() end");
    REQUIRE(run(state.L, "local x = 0 for i = 1, 100000 do x = x + i end return x > 0") == "true");
    CHECK(label_bytes(state.L)["trace"] == 0);
}

TEST_CASE("blocks of a short life are booked while they live")
{
    LabelledState state;
#if LUA_VERSION_NUM == 502
    // its buffers are userdata
    CHECK(seen_while(state.L, "userdata",
                     "local i = 0 "
                     "local s = ('y'):rep(2000):gsub('y', function() "
                     "  i = i + 1 if i == 2000 then look() end "
                     "  return ('x'):rep(1000) "
                     "end) "
                     "return #s == 2000000") >= 1999 * 1000);
#elif LUA_VERSION_NUM >= 503
    // that of 5.5 becomes the string
    CHECK(seen_while(state.L, LUA_VERSION_NUM >= 505 ? "string" : "buffer",
                     "local t = setmetatable({}, {__index = function(t, i) "
                     "  if i == 2000 then look() end "
                     "  return ('x'):rep(1000) "
                     "end}) "
                     "return #table.concat(t, '', 1, 2000) == 2000000") >= 2000 * 999);
#endif
    // The reader of load() is called in the middle of the parser's work.
    long long parser = seen_while(state.L, "parser",
                                  "local n, s = 0, {} "
                                  "for i = 1, 150 do s[i] = 'local v' .. i .. ' = ' .. i .. '\\n' end "
                                  "s[151] = 'look()' "
                                  "local f = load(function() n = n + 1 look() return s[n] end) "
                                  "return f ~= nil");
#if LUA_VERSION_NUM >= 502 || defined(HKL_LUAJIT)
    CHECK(parser >= 150 * 2);
#else
    (void)parser; // 5.1 keeps what it needs on the C stack
#endif
    lua_gc(state.L, LUA_GCCOLLECT, 0);
    CHECK(label_bytes(state.L)["parser"] == 0);
}

TEST_CASE("what lua_newstate makes is the registry")
{
    lua_State *L = hak_lua_newstate_labelled(nullptr, nullptr);
    REQUIRE(L != nullptr);
    Bytes bytes = label_bytes(L);
    INFO(Growth(Bytes(), bytes).text());
    CHECK(bytes["registry"] > 2000);
    CHECK(bytes["registry"] == (long long)stats_of(L).live_bytes);
    lua_close(L);
}

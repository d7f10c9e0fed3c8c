/* The operations of calibration. Each watches blocks that sizes or fates tell apart: sizes hold for all
 * runtimes of the binding on 64-bit machines (values of 8 or 16 bytes, tables of 56 or 64). What must
 * exist before, keys for example, is made by the chunk, outside of what is watched. */
#include "calibrate_ops.h"

#include <lauxlib.h>
#include <lualib.h>

#include <stdint.h>

#define ANY SIZE_MAX

static int make_strings(lua_State *L)
{
    char text[300] = "";
    for (int i = 0; i < 8; i++) {
        text[0] = (char)('a' + i);
        lua_pushlstring(L, text, sizeof text);
        lua_pop(L, 1);
    }
    return 0;
}

static int make_tables(lua_State *L)
{
    lua_newtable(L);
    lua_createtable(L, 0, 0);
    lua_createtable(L, 3, 0); /* in one block with the table on LuaJIT; too small for a rule elsewhere */
    return 0;
}

static int make_arrays(lua_State *L)
{
    lua_createtable(L, 60, 0);
    return 0;
}

static int make_hashes(lua_State *L)
{
    lua_createtable(L, 0, 60);
    return 0;
}

static int make_userdata(lua_State *L)
{
    lua_newuserdata(L, 0);
    lua_newuserdata(L, 400);
    return 0;
}

static int make_c_closures(lua_State *L)
{
    lua_pushcclosure(L, make_userdata, 0);
    for (int i = 0; i < 10; i++)
        lua_pushinteger(L, i);
    lua_pushcclosure(L, make_userdata, 10);
    return 0;
}

static int make_threads(lua_State *L)
{
    lua_newthread(L);
    return 0;
}

static int grow_stack(lua_State *L)
{
    lua_State *co = lua_newthread(L);
    lua_checkstack(co, 2000);
    return 0;
}

/* Slots that exist already, to keep what is made. */
#define SLOTS "{1,2,3}"

/* What is required here is found in no file of the program's, which would run. */
void hkl_open_libraries(lua_State *L)
{
    luaL_openlibs(L);
    lua_getglobal(L, "package");
    lua_pushliteral(L, "");
    lua_setfield(L, -2, "path");
    lua_pushliteral(L, "");
    lua_setfield(L, -2, "cpath");
    lua_pop(L, 1);
}

static int open_libraries(lua_State *L)
{
    hkl_open_libraries(L);
    return 0;
}

#define PRELUDE "local unpack, load = unpack or table.unpack, loadstring or load "

/* A chunk with every kind of vector that a parser grows. Compiled once before, so that its strings are
 * there already. */
#define CHUNK_TEXT                                                                                           \
    PRELUDE                                                                                                  \
    "local s = {} "                                                                                          \
    "for f = 1, 2 do "                                                                                       \
    "  s[#s + 1] = 'local function f' .. f .. '(...) ' "                                                     \
    "  for i = 1, 18 do "                                                                                    \
    "    s[#s + 1] = ('local v%d_%d = {%d.5, \"k%d_%d\"}\\n'):format(f, i, f * 100 + i, f, i) "              \
    "  end "                                                                                                 \
    "  s[#s + 1] = 'local function g() ' "                                                                   \
    "  for i = 1, 18 do s[#s + 1] = ('v%d_%d = v%d_%d + %d '):format(f, i, f, i, 300 + i) end "              \
    "  for i = 1, 12 do s[#s + 1] = 'while v' .. f .. '_1 do if x then break end end ' end "                 \
    "  s[#s + 1] = 'local function a() end local function b() end return g end return g end\\n' "            \
    "end "                                                                                                   \
    "local plain = table.concat(s) "                                                                         \
    "local labels = {} "                                                                                     \
    "for i = 1, 12 do labels[i] = ('goto l%d ::m%d:: '):format(i, i) end "                                   \
    "for i = 1, 12 do labels[#labels + 1] = ('::l%d:: '):format(i) end "                                     \
    "text = plain .. table.concat(labels) "                                                                  \
    "if not load(text) then text = plain end "                                                               \
    "keep = load(text) "

#define COLLECT                                                                                              \
    "local function collect() collectgarbage() collectgarbage() collectgarbage('stop') end "                 \
    "for i = 1, 4 do collect() end "

const hkl_calibrate_op hkl_calibrate_ops[] = {
    /* Many short strings: what is large is their index. First, so that it grows no more later. */
    {.script = "return function() local s = {} for i = 1, 1300 do s[1] = 'n' .. i end end",
     .rules = {{HKL_KIND_STRTAB, 2000, ANY, HKL_FATE_ANY, true}}},

    /* While the compiler's own buffers are still small. */
    {.script =
         "local function work(n, t) "
         "  local a, b, c = 0, 1.5, 0 "
         "  for i = 1, n do "
         "    if i % 3 == 0 then a = a + i elseif i % 5 == 0 then b = b * 1.25 else c = c + 0.1 + i % 7 end "
         "    t[i % 8 + 1] = a + 1.1 * b - 2.2 * c + 3.3 "
         "    for j = 1, 4 do if t[j] and t[j] > a then a = a + t[j] % 11 - 1e10 end end "
         "  end "
         "  return a + b + c "
         "end "
         "return function() for r = 1, 3 do work(200, {1, 2, 3, 4, 5, 6, 7, 8}) end jit.flush() end",
     .broad = true,
     .compiling = true,
     .rules = {{HKL_KIND_TRACE, 1, ANY, HKL_FATE_ANY, false}}},
    {.script = "return function() require 'ffi' end",
     .broad = true,
     .rules = {{HKL_KIND_CDATA, 1, ANY, HKL_FATE_ANY, false}}},
    {.run = open_libraries, .broad = true, .rules = {{HKL_KIND_CLOSURE, 32, 56, HKL_FATE_KEPT, false}}},
    {.script = "return function() require 'jit.util' require 'jit.profile' end",
     .broad = true,
     .rules = {{HKL_KIND_CLOSURE, 32, 56, HKL_FATE_KEPT, false}}},

    {.run = make_strings, .rules = {{HKL_KIND_STRING, 300, 400, HKL_FATE_ANY, false}}},
    {.script = "local s = ('y'):rep(400) "
               "return function() for i = 1, 3 do local x = s:sub(i, i + 310) end end",
     .traces = true,
     .rules = {{HKL_KIND_STRING, 311, 400, HKL_FATE_ANY, false}}},

    {.run = make_tables, .rules = {{HKL_KIND_TABLE, 52, 200, HKL_FATE_ANY, false}}},
    {.run = make_arrays,
     .rules = {{HKL_KIND_TABLE, 52, 80, HKL_FATE_ANY, false},
               {HKL_KIND_ARRAY, 400, ANY, HKL_FATE_ANY, false}}},
    {.run = make_hashes,
     .rules = {{HKL_KIND_TABLE, 52, 80, HKL_FATE_ANY, false},
               {HKL_KIND_HASH, 400, ANY, HKL_FATE_ANY, false}}},
    {.script = "local a, k = 1, " SLOTS " "
               "return function() "
               "  for i = 1, 3 do k[i] = {} end "
               "  for i = 1, 3 do k[i] = {1, 2, 3} end "
               "  for i = 1, 3 do k[i] = {a, a, a} end "
               "  for i = 1, 3 do k[i] = {x = 1} end "
               "  for i = 1, 3 do k[i] = {x = a} end "
               "end",
     .traces = true,
     .rules = {{HKL_KIND_TABLE, 52, 120, HKL_FATE_ANY, false}}},
    {.script =
         "local a, k, t = 1, " SLOTS ", {} "
         "for i = 1, 60 do t[i] = i end " PRELUDE "local function f() "
         "  for i = 1, 3 do k[i] = {1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25} end "
         "  for i = 1, 3 do k[i] = {a,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25} end "
         "  for i = 1, 3 do k[i] = {a, unpack(t)} end "
         "end "
         "f() return f",
     .traces = true,
     .rules = {{HKL_KIND_TABLE, 52, 80, HKL_FATE_ANY, false},
               {HKL_KIND_ARRAY, 200, ANY, HKL_FATE_ANY, false}}},
    {.script =
         "local a, k = 1, " SLOTS " "
         "return function() "
         "  for i = 1, 3 do k[i] = {a=1,b=2,c=3,d=4,e=5,f=6,g=7,h=8,i=9,j=1,k=2,l=3,m=4,n=5,o=6,p=7,q=8} end "
         "  for i = 1, 3 do k[i] = {a=a,b=2,c=3,d=4,e=5,f=6,g=7,h=8,i=9,j=1,k=2,l=3,m=4,n=5,o=6,p=7,q=8} end "
         "end",
     .traces = true,
     .rules = {{HKL_KIND_TABLE, 52, 80, HKL_FATE_ANY, false},
               {HKL_KIND_HASH, 400, ANY, HKL_FATE_ANY, false}}},
#if LUA_VERSION_NUM >= 505
    /* Those of fewer than 8 nodes are made by another call. */
    {.script = "local k = " SLOTS " return function() for i = 1, 3 do k[i] = {a = i, b = i, c = i} end end",
     .rules = {{HKL_KIND_HASH, 96, 96, HKL_FATE_ANY, false}}},
#endif
    {.script = "local t = " SLOTS " "
               "return function() "
               "  for i = 1, 3 do t[i] = {} end "
               "  for i = 1, 3 do local u = t[i] for j = 1, 40 do u[j] = j end end "
               "end",
     .traces = true,
     .rules = {{HKL_KIND_ARRAY, 260, ANY, HKL_FATE_ANY, false}}},
    {.script = "local t, k = " SLOTS ", {} "
               "for i = 1, 40 do k[i] = 'key' .. i end "
               "return function() "
               "  for i = 1, 3 do t[i] = {} end "
               "  for i = 1, 3 do local u = t[i] for j = 1, 40 do u[k[j]] = j end end "
               "end",
     .traces = true,
     .rules = {{HKL_KIND_HASH, 260, ANY, HKL_FATE_ANY, false}}},

    {.run = make_c_closures, .rules = {{HKL_KIND_CLOSURE, 1, ANY, HKL_FATE_ANY, false}}},
    {.script = "local function make(a, b, c, d, e, f, g, h) "
               "  return function() a = 1 return a, b, c, d, e, f, g, h end "
               "end "
               "local k = " SLOTS " "
               "return function() for i = 1, 3 do k[i] = make(i, i, i, i, i, i, i, i) end end",
     .traces = true,
     .rules = {{HKL_KIND_CLOSURE, 80, ANY, HKL_FATE_ANY, false},
               {HKL_KIND_UPVALUE, 24, 56, HKL_FATE_ANY, false}}},
#if LUA_VERSION_NUM < 502
    {.script = "local a, b, c = 1, 2, 3 "
               "local s = string.dump(function() return a, b, c end) "
               "local keep = loadstring(s, '=?') "
               "return function() loadstring(s, '=?') end",
     .rules = {{HKL_KIND_CLOSURE, 60, 72, HKL_FATE_KEPT, false},
               {HKL_KIND_UPVALUE, 36, 48, HKL_FATE_KEPT, false}}},
    {.script = "local keep = loadstring('', '=?') return function() loadstring('', '=?') end",
     .rules = {{HKL_KIND_CLOSURE, 32, 40, HKL_FATE_KEPT, false}}},
#endif

    {.run = make_userdata, .rules = {{HKL_KIND_USERDATA, 24, ANY, HKL_FATE_ANY, false}}},

    {.run = make_threads,
     .rules = {{HKL_KIND_THREAD, 80, 250, HKL_FATE_ANY, false},
               {HKL_KIND_STACK, 251, ANY, HKL_FATE_ANY, false}}},
    {.run = grow_stack, .rules = {{HKL_KIND_STACK, 4000, ANY, HKL_FATE_ANY, false}}},
    {.script = "local function r(n) if n > 0 then return 1 + r(n - 1) end return 0 end "
               "return function() r(300) end",
     .rules = {{HKL_KIND_STACK, 1, ANY, HKL_FATE_ANY, false}}},

    {.script =
         "local ffi = require 'ffi' "
         "ffi.cdef 'long labs(long);' "
         "local s, a = ffi.typeof 'struct {struct {int x;} s; int v[4]; int64_t q;}', ffi.typeof 'int[?]' "
         "local z, p = ffi.typeof 'struct {char c[64];} __attribute__((aligned(64)))', ffi.typeof 'void*' "
         "local i64, labs, k = ffi.typeof 'int64_t', ffi.C.labs, {} "
         "for i = 1, 12 do k[i] = 1 end "
         "return function() "
         "  for i = 1, 3 do "
         "    local x = s() "
         "    k[1], k[2], k[3], k[4], k[5], k[6] = x, a(9), z(), x.s, x.v, x.q "
         "    k[7], k[8], k[9] = ffi.cast(p, k[2]), i64(i), i64(i) + 1LL "
         "    k[10], k[11], k[12] = labs(i), ffi.new(a, 5), -i64(i) * 3 "
         "  end "
         "end",
     .traces = true,
     .rules = {{HKL_KIND_CDATA, 1, ANY, HKL_FATE_ANY, false}}},

    {.script = "local s = 'return 1LL, 2ULL, 3i' "
               "local keep = loadstring(s, '=?') "
               "return function() loadstring(s, '=?') end",
     .rules = {{HKL_KIND_CDATA, 24, 32, HKL_FATE_KEPT, false}}},

    /* Sizes double from one to the next, since LuaJIT and 5.1 keep one buffer for all. */
    {.script = "local a = ('z'):rep(800) return function() return a .. a .. a end",
     .rules = {{HKL_KIND_BUFFER, 2400, 2400, HKL_FATE_ANY, false},
               {HKL_KIND_BUFFER, 1000, ANY, HKL_FATE_ANY, true}}},
    {.script = "local s = \"return '\" .. ('t'):rep(1200) .. \"'\" " PRELUDE "local keep = load(s, '=?') "
               "return function() load(s, '=?') end",
     .rules = {{HKL_KIND_BUFFER, 1000, ANY, HKL_FATE_FREED, true}}},
#if LUA_VERSION_NUM >= 503
    /* In 5.5 what is joined in a luaL_Buffer becomes the string, without another call if its size was known
     * before. */
    {.script = "local a = ('z'):rep(4500) "
               "local function f() "
               "  local x = a:rep(2), table.concat({a, a, a}) "
               "end "
               "f() return f",
     .rules = {{LUA_VERSION_NUM >= 505 ? HKL_KIND_STRING : HKL_KIND_BUFFER, 1000, ANY, HKL_FATE_ANY, false}}},
#elif LUA_VERSION_NUM == 501
    {.script = "return function() local x = ('ab'):rep(2501) end",
     .rules = {{HKL_KIND_BUFFER, 1000, ANY, HKL_FATE_ANY, true}}},
    {.script = "local t = {} for i = 1, 20 do t[i] = ('z'):rep(500) end "
               "return function() local x = table.concat(t) end",
     .rules = {{HKL_KIND_BUFFER, 1000, ANY, HKL_FATE_ANY, true}}},
#endif

    /* Broad ones: what is not known from above. */
    {.script = CHUNK_TEXT "return function() load(text) end",
     .broad = true,
     .rules = {{HKL_KIND_PROTO, 1, ANY, HKL_FATE_KEPT, false},
               {HKL_KIND_PARSER, 1, ANY, HKL_FATE_FREED, false}}},
    {.script = PRELUDE "local s = string.dump(keep) keep = load(s, '=?') return function() load(s, '=?') end",
     .broad = true,
     .rules = {{HKL_KIND_PROTO, 1, ANY, HKL_FATE_KEPT, false},
               {HKL_KIND_PARSER, 1, ANY, HKL_FATE_FREED, false}}},
    {.script = "local ffi = require 'ffi' "
               "return function() "
               "  for i = 1, 40 do ffi.cdef('struct hk' .. i .. ' {int a; struct {int b;} c;};') end "
               "  local c = ffi.gc(ffi.new 'int[4]', print) "
               "  ffi.gc(c, nil) "
               "  ffi.cdef 'int abs(int);' "
               "  local f, m = ffi.C.abs, ffi.metatype('struct hk1', {}) "
               "end",
     .broad = true,
     .rules = {{HKL_KIND_CDATA, 1, ANY, HKL_FATE_ANY, false}}},
    /* A rehash that finds arrays nearly empty. */
    {.script = "local t = {} "
               "for i = 1, 3 do "
               "  local u = {} t[i] = u "
               "  for j = 1, 40 do u[j] = j end "
               "  for j = 3, 40 do u[j] = nil end "
               "end "
               "return function() for i = 1, 3 do t[i].x = i end end",
     .broad = true,
     .rules = {{HKL_KIND_ARRAY, 1, ANY, HKL_FATE_ANY, false}}},
    /* The collector shrinks stacks and the shared buffer; one of them at a time. */
    {.script = COLLECT "local s = ('w'):rep(9000) s = s .. 'w' s = nil return collect",
     .broad = true,
     .rules = {{HKL_KIND_BUFFER, 1000, ANY, HKL_FATE_ANY, false}}},
    {.script = COLLECT "local function r(n) if n > 0 then return 1 + r(n - 1) end return 0 end "
                       "r(300) return collect",
     .broad = true,
     .rules = {{HKL_KIND_STACK, 400, ANY, HKL_FATE_ANY, false}}},
};

const size_t hkl_calibrate_op_count = sizeof hkl_calibrate_ops / sizeof hkl_calibrate_ops[0];

// The lines of what LuaJIT's compiled code allocates: eighteen kinds of code, each of which allocates at several
// lines, run by the interpreter and compiled. What the interpreter says is the truth.
#include "lua_test.h"

#ifdef HKL_LUAJIT

#include <hakmem/profile.h>

#include <algorithm>
#include <cstring>
#include <map>

using namespace test;

namespace
{

struct Kind {
    const char *name;
    const char *code; // a function of n
};

// All that is allocated is kept for a while, so that the compiler cannot do without it.
const Kind KINDS[] = {
    {"constructors", R"(
for i = 1, n do
    keep[1] = { i }
    keep[2] = { i, i, i }
    keep[3] = {}
    keep[4] = { x = i, y = i }
end)"},
    {"constant constructors", R"(
for i = 1, n do
    keep[1] = { 1, 2, 3 }
    keep[2] = { x = 1, y = 2 }
    keep[3] = { name = 'a', 1, 2 }
end)"},
    {"several to a statement", R"(
for i = 1, n do
    keep[i % 10] = {
        { i },
        { i, i },
        {
            a = { i }
        },
    }
end)"},
    {"concatenation", R"(
for i = 1, n do
    local a = 'a' .. i
    local b = a .. 'b' .. i
    keep[1] =
        b .. 'c' .. a
end)"},
    {"strings", R"(
local text = ('abcdefghij'):rep(1000)
for i = 1, n do
    keep[1] = ('%s and %s'):format(text:sub(i, i + 9 + i % 100), 'x')
    keep[2] = tostring(-i)
    keep[3] = text:sub(i, i + 40)
    keep[4] = tostring(i + 0.5)
    keep[5] = ('no %d'):format(i):upper()
end)"},
    {"growth", R"(
local t, u = {}, {}
for i = 1, n do
    t[#t + 1] = i
    u[i * 1.5] = i
    u['k' .. i % 100] = i
    if #t > 1000 then
        t = {}
        u = {}
    end
end
for k = 1, n / 100 do
    local v = {}
    for i = 1, 100 do
        v[i] = i
    end
    local w = {}
    for i = 1, 50 do
        table.insert(w, i)
    end
end)"},
    {"closures", R"(
for i = 1, n do
    local j = i
    keep[1] = function() return j end
    keep[2] = {
        function() return i end }
end)"},
    {"inlined functions", R"(
local function pair(a, b)
    return { a, b }
end
local function name(i)
    local s = 'n' .. i
    return s
end
local function both(i)
    local p = pair(i, name(i))
    return { p, i }
end
for i = 1, n do
    keep[1] = both(i)
    keep[2] = pair(i, i)
    keep[3] = name(-i)
end)"},
    {"objects", R"(
local Point = {}
Point.__index = Point
function Point.new(x, y)
    local self = { x = x, y = y }
    return setmetatable(self, Point)
end
function Point:add(other)
    return Point.new(self.x + other.x, self.y + other.y)
end
function Point:text()
    return self.x .. ',' .. self.y
end
local at = Point.new(0, 0)
for i = 1, n do
    local step = Point.new(i, 1)
    at = at:add(step)
    keep[i % 8] = step
    keep[8] = at
    keep[9] = step:text()
end)"},
    {"branches", R"(
for i = 1, n do
    if i % 3 == 0 then
        keep[1] = { i }
    elseif i % 3 == 1 then
        keep[2] = { i, 1, 2 }
    else
        keep[3] = 'odd' .. i
    end
    if i % 2 == 0 then
        keep[4] = { n = i }
    end
end)"},
    {"loops in loops", R"(
for i = 1, n / 10 do
    local row = {}
    for j = 1, 10 do
        row[j] = { i, j }
    end
    keep[1] = row
    local k = 0
    while k < 5 do
        k = k + 1
        keep[2] = { k }
    end
    repeat
        k = k - 1
        keep[3] = 'r' .. i .. k
    until k == 0
end)"},
    {"tests of what the compiler knows", R"(
local i = 0
local function goes_on()
    i = i + 1
    table.concat(keep, ',')
    return i < n
end
local function no()
    return false
end
local head
local function make()
    while goes_on() do
        head = { next = head, i = i }
        if i % 100 == 0 then head = nil end
    end
end
make()
for k = 1, n do
    if no(k) then
        keep.a = { k }
    else
        keep.a = { k, k }
    end
    if not no(k) then
        keep.b = { k, k, k }
    else
        keep.b = {}
    end
end)"},
    {"a test of what only runs tell", R"(
local text, limit = tostring, 1
local function make()
    for i = 1, n do
        local s = text(i * 3)
        if i > limit then
            keep[2] = tostring(i * 7)
        end
        keep[1] = s
    end
end
make())"},
    {"recursion", R"(
local function tree(depth)
    if depth == 0 then
        return { 0 }
    end
    local left = tree(depth - 1)
    local right = tree(depth - 1)
    return { left, right }
end
for i = 1, n / 60 do
    keep[1] = tree(5)
end)"},
    {"coroutines", R"(
local function body(m)
    for i = 1, m do
        local t = { i }
        keep[1] = t
        coroutine.yield('y' .. i)
    end
end
for k = 1, n / 50 do
    local co = coroutine.wrap(body)
    for i = 1, 50 do
        keep[2] = { co(50) }
    end
end)"},
    {"metamethods", R"(
local meta = {
    __index = function(t, k)
        return { k }
    end,
    __add = function(a, b)
        return { a, b, 1 }
    end,
    __concat = function(a, b)
        return 'cat' .. #keep
    end,
}
local m = setmetatable({}, meta)
for i = 1, n do
    keep[1] = m[i]
    keep[2] = m + i
    keep[3] = m .. 'x'
end)"},
    {"varargs and iterators", R"(
local function pack(...)
    return { ... }
end
local function each(list)
    local i = 0
    return function()
        i = i + 1
        return list[i]
    end
end
local list = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 }
for i = 1, n / 10 do
    keep[1] = pack(i, i, i)
    for _, v in ipairs(list) do
        keep[2] = { v }
    end
    for k, v in pairs(list) do
        keep[3] = { k, v, 0 }
    end
    for v in each(list) do
        keep[4] = 'v' .. v .. i
    end
end)"},
    {"cdata", R"(
local ffi = require('ffi')
local box = ffi.typeof('struct { int a, b; }')
local many = ffi.typeof('double[?]')
for i = 1, n do
    keep[1] = box(i, 1)
    keep[2] = many(i % 7 + 1)
    keep[3] = ffi.new('int[4]')
    keep[4] = 5LL + i
end)"},
};

struct Sums {
    hak_ctx *ctx;
    lua_State *L;
    std::map<int, double> lines; // of the program; 0 = elsewhere
};

bool add_line(void *user, const hak_profile_stack *s)
{
    auto *sums = static_cast<Sums *>(user);
    const char *label = hak_label_name(sums->ctx, s->label);
    int line = 0;
    // What the compiler itself takes is not the program's, and the table of all strings grows at whichever string
    // comes then.
    for (const char *other : {"trace", "strtab"})
        if (label != nullptr && std::strcmp(label, other) == 0) return true;
    for (unsigned i = 0; i < s->depth && line == 0; i++) {
        hak_lua_frame f;
        if (hak_lua_profile_frame(sums->L, s->frames[i], &f) != 0) continue;
        if (std::strcmp(f.source, "@kind.lua") == 0) line = f.line;
        else if (*f.source != '\0') break;
    }
    sums->lines[line] += s->alloc_bytes;
    return true;
}

std::map<int, double> lines_of(const Kind &kind, bool compiled, hak_lua_profile_mode mode)
{
    lua_State *L = hak_lua_newstate_labelled(nullptr, nullptr);
    REQUIRE(L != nullptr);
    luaL_openlibs(L);
    run(L, compiled ? "jit.opt.start('hotloop=4', 'hotexit=2') jit.flush()" : "jit.off()");
    const std::string code = std::string("local keep, n = {}, 6000 ") + kind.code;
    REQUIRE(luaL_loadbuffer(L, code.data(), code.size(), "@kind.lua") == 0);
    hak_lua_profile_options o = HAK_LUA_PROFILE_OPTIONS_INIT;
    o.mode = mode;
    REQUIRE(hak_lua_profile_start(L, &o) == 0);
    if (lua_pcall(L, 0, 0, 0) != 0) FAIL(kind.name << ": " << lua_tostring(L, -1));
    Sums sums = {hak_lua_context(L), L, {}};
    CHECK(hak_profile_visit(sums.ctx, add_line, &sums) == 0);
    lua_close(L);
    return sums.lines;
}

} // namespace

TEST_CASE("places: compiled code's allocations are at the lines that the interpreter has for them")
{
    const auto mode = GENERATE(HAK_LUA_PROFILE_EXACT, HAK_LUA_PROFILE_LINES);
    double all = 0, right = 0, least = 1;
    std::string table;
    for (const Kind &kind : KINDS) {
        const std::map<int, double> truth = lines_of(kind, false, mode);
        std::map<int, double> compiled = lines_of(kind, true, mode);
        double of = 0, at = 0;
        std::string lines;
        for (const auto &[line, bytes] : compiled)
            of += bytes;
        for (const auto &[line, bytes] : truth) {
            at += std::min(bytes, compiled[line]);
            lines += "  " + std::to_string(line) + ": " + std::to_string((long)bytes) + " " +
                     std::to_string((long)compiled[line]);
        }
        all += 1;
        right += at / of;
        least = std::min(least, at / of);
        table += std::to_string(at / of) + " " + kind.name + lines + "\n";
    }
    INFO(table);
    CHECK(right / all > 0.95);
    CHECK(least > 0.95);
}

#endif

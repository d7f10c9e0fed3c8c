// Stacks that are known by their key, against the walk, at each allocation.
#include "taker.h"

#include <filesystem>

using namespace test;

namespace
{

// Most stacks are known; what is left is walked, and right.
void check_same(const Taker &t, double least)
{
    INFO(t.difference);
    INFO(t.same << " same, " << t.again << " again, " << t.walked << " walked of " << t.found);
    std::string walks;
    for (auto &w : t.walks)
        if (w.second > 20) walks += std::to_string(w.second) + " " + w.first + "\n";
    INFO(walks);
    CHECK(t.different == 0);
    CHECK(t.same + t.walked == t.found);
    CHECK((double)t.again >= least * (double)t.found);
}

void check_code(const std::string &code, double least)
{
    for (const char *jit : {"if jit then jit.off() end ", ""}) {
        INFO(code);
        Taker t((size_t)-1);
        t.compare();
        CHECK(t.run(jit + code) == "ok");
        check_same(t, least);
    }
}

} // namespace

TEST_CASE("quick: the programs have the lines of the walk")
{
    for (const auto &entry : std::filesystem::directory_iterator(BENCH_PROGRAMS)) {
        INFO(entry.path());
        Taker t((size_t)-1);
        t.compare();
        CHECK(t.run_program(entry.path()) == "ok");
        check_same(t, 0.7);
    }
}

TEST_CASE("quick: coroutines, errors, finalizers, metamethods, tail calls, hooks")
{
    check_code(R"(
local function leaf(n) return { n, ('x'):rep(n) } end
local function tail(n) return leaf(n) end
local function tail_in_c(n) return string.rep('y', n) end
local meta = {
    __index = function(t, k)
        return pcall(function()
            return coroutine.wrap(function()
                local made = leaf(k)
                coroutine.yield({ made })
                return tail(k)
            end)()
        end)
    end,
    __concat = function(a, b) return { a, b } end,
    __eq = function(a, b) return #leaf(3) > 0 end,
    __gc = function(o) keep = { leaf(5), tostring({}) } end,
    __tostring = function() return 'made ' .. #leaf(7) end,
}
meta.__call = string.rep
for i = 1, 300 do
    local t, u = setmetatable({}, meta), setmetatable({}, meta)
    local a = t[i % 40]
    local b = t .. 'x' .. u
    local c = t == u
    local d = tostring(t) .. tail_in_c(i)
    local proxy = newproxy and newproxy(true)
    if proxy then getmetatable(proxy).__gc = function() keep = leaf(6) end end
    local ok, e = pcall(error, { leaf(i) })
    ok, e = pcall(function() local x = nil; return x.field end)
    ok, e = pcall(function() local x = 'a' + {}; return x end)
    ok, e = xpcall(function() error('e' .. i) end, function(m) return { m, debug.traceback(m) } end)
    ok, e = pcall(string.rep)
    ok, e = pcall(5)
    ok, e = pcall(pcall, string.format, '%s %s', i, u)
    local co = coroutine.create((jit or _VERSION ~= 'Lua 5.1') and string.rep or leaf) -- 5.1 takes none in C
    ok, e = coroutine.resume(co, i, i)
    co = coroutine.wrap(function(...) local n = select('#', ...) return { n, ... } end)
    local f = co(i, i, i)
    table.sort({ 3, 1, 2 }, function(x, y) keep = { x, y } return x < y end)
    local s = ('a b c d'):gsub('%w', function(w) return w .. i end):gsub('%w', { a = 'b' })
    for w in ('one two'):gmatch('%a+') do keep = w .. i end
    if i % 100 == 0 then collectgarbage() end
end
return 'ok')",
               0.6);
    check_code(R"(
local function work(n)
    local t = {}
    for i = 1, n do t[i] = { i } t['k' .. i] = ('x'):rep(i) end
    return t
end
local co = coroutine.create(work)
for i, how in ipairs { 'l', 'c', 'r', 'crl', '' } do
    debug.sethook(function(e, l) keep = { e, l } local s = 'line ' .. tostring(l) end, how, i == 5 and 7 or 0)
    work(20)
    coroutine.resume(coroutine.create(work), 5)
    debug.sethook()
end
return 'ok')",
               0.3);
}

TEST_CASE("quick: functions that are collected, with others where they were")
{
    check_code(R"(
for i = 1, 400 do
    local lines = ('\n'):rep(i % 50)
    local code = lines .. 'local t = {} ' .. lines .. ' for i = 1, 5 do t[i] = {i} ' .. lines ..
        ' t[-i] = ("x"):rep(i) .. i end return t'
    local f = (loadstring or load)(code, '=' .. 'chunk' .. i % 7)
    f() f()
    f = nil
    if i % 10 == 0 then collectgarbage() collectgarbage() end
end
return 'ok')",
               0.3);
}

TEST_CASE("quick: as many functions as there is room for, and more")
{
    check_code(R"(
local all = {}
for i = 1, 3000 do
    all[i] = (loadstring or load)('return function(n) local t = {n}\n return {t, ' .. i .. '} end')()
end
for turn = 1, 4 do for i = 1, #all do all[i](i) end end
for turn = 1, 40 do for i = 1, 100 do all[i](i) end end
return 'ok')",
               0.1);
}

#ifdef HKL_LUAJIT

// A trace that begins at a return, or at a loop, takes its place in the bytecode that older traces were made of.
TEST_CASE("quick: traces that begin at a return of a function that others have inlined")
{
    for (const char *hot : {"'hotloop=4', 'hotexit=2'", "'hotloop=4', 'hotexit=4'",
                            "'hotloop=8', 'hotexit=2'", "'hotloop=8', 'hotexit=4'"}) {
        INFO(hot);
        Taker t((size_t)-1);
        t.compare();
        CHECK(t.run("jit.opt.start(" + std::string(hot) + ")" + R"(
local ops = { ['+'] = true, ['-'] = true }
local function fold(node)
    local op = node.op
    if ops[op] then
        local left, right = fold(node.left), fold(node.right)
        if left.op == 'const' and right.op == 'const' then
            return { op = 'const' }
        end
        return { op = op, left = left, right = right }
    elseif op == 'let' then
        return { op = op, value = fold(node.value), body = fold(node.body) }
    elseif op == 'call' then
        local args = {}
        for i, a in ipairs(node.args) do
            args[i] = fold(a)
        end
        return { op = op, args = args }
    end
    return node
end
local seed = 1
local function random(n)
    seed = seed * 16807 % 2147483647
    return seed % n
end
local function tree(depth)
    local kind = depth == 0 and 0 or random(5)
    if kind == 0 then return { op = random(2) == 0 and 'const' or 'var' } end
    if kind == 1 then return { op = 'let', value = tree(depth - 1), body = tree(depth - 1) } end
    if kind == 2 then return { op = 'call', args = { tree(depth - 1), tree(depth - 1) } } end
    return { op = kind == 3 and '+' or '-', left = tree(depth - 1), right = tree(depth - 1) }
end
for i = 1, 200 do keep = fold(tree(8)) end
return 'ok')") == "ok");
        check_same(t, 0.7);
    }
}

#endif

TEST_CASE("quick: allocations that fail beside others that do not")
{
    Taker t((size_t)-1);
    t.compare();
    t.refuse = 10000 + 25; // of a string of 10000
    CHECK(t.run(R"(
local n = 0
for i = 1, 50 do
    if not pcall(function() return #('x'):rep(10000) end) then n = n + 1 end
    local u = { ('x'):rep(10001), { n } }
end
return 'ok')") == "ok");
    check_same(t, 0.3);
}

TEST_CASE("quick: luacheck has the lines of the walk")
{
    Taker t((size_t)-1);
    t.compare();
    const std::string path =
        "package.path = package.path .. ';/usr/share/lua/5.1/?.lua;/usr/share/lua/5.1/?/init.lua' ";
    if (t.run(path + "return require('luacheck') and 'ok'") != "ok") {
        WARN("no luacheck for this Lua");
        return;
    }
    CHECK(t.run("local f = io.open('" + std::string(BENCH_PROGRAMS) + "/parser.lua') " +
                "local report = require('luacheck').check_strings({ f:read('*a') }) return 'ok'") == "ok");
    check_same(t, 0.5);
}

// Which thread asks for memory, and its stack, from inside of lua_Alloc, with nothing between.
#include "taker.h"

#include <cstring>
#include <filesystem>

using namespace test;

namespace
{

// Strings of a size that nothing else has show where they were made: by string.rep, or by concatenation.
#define MAKE(n) "('x'):rep(" #n ")"

bool ends_with(const std::string &text, const std::string &end)
{
    return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

// Without the functions in C that run a chunk, and how the runtime's own names are given.
void check_stack(const Taker &t, size_t size, const std::string &expected)
{
    const std::string stack = t.stack_of(size);
    INFO(stack);
    CHECK(stack == expected);
}

const char *const NO_JIT = "if jit then jit.off() end\n";

} // namespace

TEST_CASE("functions, with their lines and those in C between them")
{
    Taker t;
    CHECK(t.run(std::string(NO_JIT) + R"(
local function inner()
    local s =
        ('x'):rep(20011)
    return #s
end
local function outer()
    local n = 1 + inner()
    return n
end
table.sort({2, 1}, function(a, b)
    outer()
    return a < b
end)
return 'ok')") == "ok");
    check_stack(t, 20011, "C rep < a.lua:5 inner < a.lua:9 outer < a.lua:13 < C sort < a.lua:12 main");
}

TEST_CASE("an expression over several lines has the line of its part")
{
    Taker t;
    t.run(std::string(NO_JIT) +
          "local a = ('y'):rep(9000)\nlocal t = {\n  1,\n  a .. a .. a,\n  2 }\nreturn 'ok'");
    const std::string stack = t.stack_of(27000);
    INFO(stack);
    CHECK(stack == "a.lua:5 main");
}

TEST_CASE("constructors have their own line, not that of the call above")
{
    Taker t(20);
    CHECK(t.run(std::string(NO_JIT) + R"(
local function f() return 1 end
local function g(...)
    f()
    local a = {}
    f()
    local b = { 1, 2, 3, 4, 5, 6, 7, 8 }
    f()
    local c = function() return a end
    f()
    local d = {
        f(),
        { 3 },
        x = 1 }
    return a, b, c, d
end
g(1, 2)
keep = nil
return 'ok')") == "ok");
    std::vector<int> at(30);
    for (const Taken &taken : t.taken)
        for (int line = 1; line < 30; line++)
            at[line] += taken.stack == "a.lua:" + std::to_string(line) + " g < a.lua:18 main";
    for (int line : {6, 8, 10, 12})
        CHECK(at[line] >= 1);
    for (int line : {7, 9, 11})
        CHECK(at[line] == 0);
}

TEST_CASE("coroutines: the stack of the one that runs, and where it ends")
{
    Taker t;
    CHECK(t.run(std::string(NO_JIT) + R"(
local function leaf(n) return #('x'):rep(n) end
local function body(n)
    local inner = coroutine.wrap(function(m)
        local k = leaf(m)
        coroutine.yield(k)
        return leaf(m + 1000)
    end)
    local a = inner(n)
    local b = leaf(n + 2000)
    return a + b + inner()
end
local co = coroutine.create(body)
coroutine.resume(co, 20011)
local after = leaf(24011)
return coroutine.status(co))") == "dead");
    // a call in the last place leaves its caller no frame, and 5.1 has a mark there that is left out
    check_stack(t, 20011, "C rep < a.lua:3 leaf < a.lua:6");
    check_stack(t, 22011, "C rep < a.lua:3 leaf < a.lua:11");
    check_stack(t, 24011, "C rep < a.lua:3 leaf < a.lua:16 main");
    CHECK(t.stack_of(21011).rfind("C rep < a.lua:3", 0) == 0);
}

TEST_CASE("a coroutine that has died, by its end or by an error, leaves nothing behind")
{
    Taker t;
    CHECK(t.run(std::string(NO_JIT) + R"(
for i = 1, 200 do
    local co = coroutine.create(function(n)
        local t = { n }
        if n % 2 == 0 then error(t) end
        return t
    end)
    coroutine.resume(co, i)
    if i % 50 == 0 then collectgarbage() end
end
collectgarbage() collectgarbage()
local s = ('x'):rep(20011)
return 'ok')") == "ok");
    check_stack(t, 20011, "C rep < a.lua:13 main");
    CHECK(t.found == t.growths);
}

TEST_CASE("an allocation that fails raises its error, and stacks are right before and after")
{
    Taker t;
    // the size of the block for a string of 30011 bytes is that of the runtime: all that are near
    const std::string code = std::string(NO_JIT) + R"(
local function make(n) local s = ('x'):rep(n) return #s end
local ok, e = pcall(make, 30011)
local n = make(20011)
return tostring(ok) .. ' ' .. tostring(e))";
    CHECK(t.run(code) == "true 30011");
    size_t size = 0;
    for (const Taken &taken : t.taken)
        if (taken.size >= 30011 && taken.size < 30011 + 64) size = taken.size;
    REQUIRE(size != 0);
    t.taken.clear();
    t.run("collectgarbage() collectgarbage()", "@b.lua");
    t.refuse = size;
    CHECK(t.run(code) == "false not enough memory");
    // by now a caller has a name for it
    check_stack(t, 30011, "C rep < a.lua:3 make < C pcall < a.lua:4 main");
    check_stack(t, 20011, "C rep < a.lua:3 make < a.lua:5 main");
}

TEST_CASE("finalizers and metamethods have the stack that they run on")
{
    Taker t;
    CHECK(t.run(std::string(NO_JIT) + R"(
local made = 0
local function final() made = #('x'):rep(20011) end
local function proxy()
    if newproxy then
        local p = newproxy(true)
        getmetatable(p).__gc = final
    else
        setmetatable({}, { __gc = final })
    end
end
proxy()
collectgarbage() collectgarbage()
local t = setmetatable({}, { __index = function(_, k)
    local s = k:rep(22011)
    return #s
end })
local n = t.x
return made)") == "20011");
    const std::string stack = t.stack_of(20011);
    INFO(stack);
    CHECK(stack.rfind("C rep < a.lua:4 ", 0) == 0);
    CHECK(ends_with(stack, "a.lua:14 main"));
    CHECK(t.stack_of(22011).rfind("C rep < a.lua:16", 0) == 0);
    CHECK(ends_with(t.stack_of(22011), "a.lua:19 main"));
}

TEST_CASE("a stack that is too deep is cut at its outer end")
{
    for (unsigned most : {1u, 2u, 32u}) {
        Taker t(10000, most);
        t.run(std::string(NO_JIT) + R"(
local function deep(n)
    if n == 0 then local s = ('x'):rep(20011) return #s end
    return 1 + deep(n - 1)
end
deep(500))");
        const std::string stack = t.stack_of(20011);
        INFO(stack);
        size_t frames = 1;
        for (size_t at = stack.find(" < "); at != std::string::npos; at = stack.find(" < ", at + 1))
            frames++;
        CHECK(frames == (most == 1 ? 2 : most + 2)); // and rep, and the cut
        CHECK(stack.rfind("C rep < a.lua:4 deep", 0) == 0);
        CHECK(ends_with(stack, " < cut") == (most > 1));
    }
}

TEST_CASE("a stack that moves has the lines of the calls on it")
{
    for (const bool wrapped : {false, true}) {
        Taker t(3000, 4);
        CHECK(t.run(std::string(NO_JIT) + R"(
local function deep(n)
    if n == 0 then return 0 end
    return 1 + deep(n - 1)
end
local function top(n)
    return 1 + deep(n)
end
local n = )" + std::string(wrapped ? "coroutine.wrap(top)(4000)" : "top(4000)") +
                    "\nreturn n == 4001 and 'ok'") == "ok");
        CHECK(t.found == t.growths);
        size_t right = 0;
        for (const Taken &taken : t.taken) {
            INFO(taken.size << " " << taken.stack);
            const bool deep = taken.stack.find("deep < a.lua:5 deep < a.lua:5 deep") != std::string::npos;
            if (deep) CHECK(ends_with(taken.stack, " < cut"));
            right += deep;
        }
        CHECK(right >= 3);
    }
}

// Chunks are loaded there, a function is about to be called, and the stack becomes full.
TEST_CASE("a thread on which nothing runs yet")
{
    Taker t(1);
    const std::string shown = std::string(NO_JIT) + "return function(a)\n  return a\nend";
    lua_State *const coroutine = lua_newthread(t.L);
    for (lua_State *L : {t.L, coroutine}) {
        const int top = lua_gettop(L);
        REQUIRE(luaL_loadbuffer(L, shown.data(), shown.size(), "@dir/a.lua") == LUA_OK);
        REQUIRE(lua_pcall(L, 0, 1, 0) == LUA_OK);
        const std::string text(L == t.L ? 20011 : 20111, 'x');
        lua_pushlstring(L, text.data(), text.size());
        check_stack(t, text.size(), L == coroutine && LUA_VERSION_NUM >= 502 ? "a.lua:2" : "");
        for (int i = 0; i < 300; i++) {
            REQUIRE(lua_checkstack(L, 1));
            lua_pushinteger(L, i);
        }
        lua_settop(L, top + 2);
        CHECK(lua_isfunction(L, top + 1));
    }
}

TEST_CASE("names outlive their functions, sources and states")
{
    std::vector<std::string> stacks;
    Taker *t = new Taker;
    hkl_frames *frames = t->frames;
    // the same block of memory gets another source, and the numbers stay different
    for (int i = 0; i < 50; i++) {
        const std::string name = "@chunk" + std::to_string(100 + i) + ".lua";
        t->taken.clear();
        t->run(std::string(NO_JIT) + "local s = ('x'):rep(20011) return #s", name.c_str());
        CHECK(t->stack_of(20011) == "C rep < chunk" + std::to_string(100 + i) + ".lua:2 main");
        t->run("collectgarbage() collectgarbage()");
    }
    t->taken.clear();
    t->run(std::string(NO_JIT) + "local s = ('x'):rep(20011) return #s", "local text = 'of the program'");
    CHECK(t->stack_of(20011) == "C rep < [string \"local text = 'of the program'\"]:2 main");
    t->frames = nullptr;
    t->state.main = nullptr;
    delete t;
    size_t sources = 0;
    for (uintptr_t i = 1; hkl_frames_at(frames, HKL_FRAME_BIT | i) != nullptr; i++)
        sources += std::strncmp(hkl_frames_at(frames, HKL_FRAME_BIT | i)->source, "@chunk", 6) == 0;
    CHECK(sources == 50);
    hkl_frames_delete(frames);
}

TEST_CASE("every allocation of every program has its thread")
{
    for (const auto &entry : std::filesystem::directory_iterator(BENCH_PROGRAMS)) {
        INFO(entry.path());
        Taker t((size_t)-1);
        CHECK(t.run_program(entry.path()) == "ok");
        CHECK(t.growths > 1000);
        CHECK(t.found == t.growths);
    }
}

TEST_CASE("numbers: as many as there is room for, and one for the rest")
{
    hkl_frames *f = hkl_frames_new(64 << 10);
    size_t known = 0, full = 0;
    std::vector<uintptr_t> numbers;
    for (int i = 1; i <= 4000; i++) {
        const std::string source = "@" + std::to_string(i % 50);
        const hak_lua_frame frame = {HAK_LUA_FRAME_LUA, source.c_str(), "f", i, 1};
        numbers.push_back(hkl_frames_number(f, &frame));
        CHECK(hkl_frames_bytes(f) <= 64 << 10);
        const hak_lua_frame *is = hkl_frames_at(f, numbers.back());
        REQUIRE(is != nullptr);
        if (is->kind == HAK_LUA_FRAME_UNKNOWN) {
            full++;
            continue;
        }
        known++;
        CHECK(is->line == i);
        CHECK(is->source == source);
        CHECK(hkl_frames_number(f, &frame) == numbers.back());
    }
    CHECK(known > 400);
    CHECK(full > 0);
    CHECK(hkl_frames_at(f, 0) == nullptr);
    CHECK(hkl_frames_at(f, (uintptr_t)&known) == nullptr);
    CHECK(hkl_frames_at(f, HKL_FRAME_BIT | 4000) == nullptr);
    hkl_frames_delete(f);
}

#ifdef HKL_LUAJIT

TEST_CASE("on a trace: its line, and its callers with theirs")
{
    Taker t(5000);
    CHECK(t.run(R"(
jit.opt.start('hotloop=3')
local ffi = require('ffi')
local box = ffi.typeof('char[?]')
local keep = {}
local function work(n)
    for i = 1, n do
        keep[1] = box(6011)
    end
end
local function outer()
    work(200)
    return 1
end
local n = outer() + 1
return 'ok')") == "ok");
    CHECK(t.on_traces > 100);
    size_t boxes = 0;
    for (const Taken &taken : t.taken) {
        if (taken.size < 6011 || taken.size > 6100) continue;
        INFO(taken.stack);
        boxes++;
        CHECK(ends_with(taken.stack, "a.lua:8 work < a.lua:12 outer < a.lua:15 main"));
    }
    CHECK(boxes == 200);
}

TEST_CASE("on a trace: inlined functions are frames, in the main thread and in a coroutine")
{
    for (const bool wrapped : {false, true}) {
        Taker t(5000);
        const std::string how = wrapped ? "coroutine.wrap(work)()" : "work()";
        CHECK(t.run(R"(
jit.opt.start('hotloop=3')
local box = require('ffi').typeof('char[?]')
local keep = {}
local function make(n)
    local made = box(n)
    keep[2] = n
    return made
end
local function twice(n)
    keep[3] = make(n)
    keep[1] = make(n + 1000)
    return 1
end
local function work()
    local n = 0
    for i = 1, 200 do
        n = n + twice(6011)
    end
    return n
end
local n = )" + how + "\nreturn 'ok'") == "ok");
        CHECK(t.on_traces > 200);
        size_t first = 0, second = 0;
        std::string others;
        for (const Taken &taken : t.taken) {
            if (taken.stack.find("a.lua:1") == std::string::npos) continue;
            if (others.find(taken.stack) == std::string::npos) others += taken.stack + "\n";
            first += taken.stack.find("a.lua:6 make < a.lua:11 twice < a.lua:18") != std::string::npos;
            second += taken.stack.find("a.lua:6 make < a.lua:12 twice < a.lua:18") != std::string::npos;
        }
        INFO(others);
        CHECK(first == 200);
        CHECK(second == 200);
    }
}

#endif

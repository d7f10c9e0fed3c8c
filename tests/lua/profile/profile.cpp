// Profiles of states: what is counted at which line, and states that end, change and fail while profiled.
#include "lua_test.h"

#include <hakmem/profile.h>

extern "C" {
#include "label/crowd.h"
}

#include <cmath>
#include <cstddef>
#include <cstring>
#include <map>
#include <string>
#include <vector>

using namespace test;

namespace
{

struct Row {
    double alloc_blocks = 0, alloc_bytes = 0, live_blocks = 0, live_bytes = 0, peak_bytes = 0, error2 = 0;
};

struct Read {
    lua_State *L;
    hak_ctx *ctx;
    std::map<std::string, Row> lines;  // innermost in Lua: "a.lua:3"
    std::map<std::string, Row> labels; // "a.lua:3 label"
    std::map<std::string, Row> stacks; // "rep < a.lua:3 < a.lua:7"
    std::map<hak_site, Row> sites;
    Row all;
};

void add(Row &row, const hak_profile_stack &s)
{
    row.alloc_blocks += s.alloc_blocks;
    row.alloc_bytes += s.alloc_bytes;
    row.live_blocks += s.live_blocks;
    row.live_bytes += s.live_bytes;
    row.peak_bytes += s.peak_bytes;
    row.error2 += s.live_bytes_error * s.live_bytes_error;
}

bool read_one(void *user, const hak_profile_stack *s)
{
    auto *r = static_cast<Read *>(user);
    std::string line = "none", stack;
    for (unsigned i = 0; i < s->depth; i++) {
        hak_lua_frame f;
        if (hak_lua_profile_frame(r->L, s->frames[i], &f) != 0) {
            stack += " native";
            continue;
        }
        std::string source = f.source;
        source = source.substr(source.find('@') == 0 ? 1 : 0);
        const std::string at = source + ":" + std::to_string(f.line);
        const bool lua = f.kind == HAK_LUA_FRAME_LUA || f.kind == HAK_LUA_FRAME_TRACE;
        if (lua && line == "none") line = at;
        stack += (stack.empty() ? "" : " < ") + (lua ? at : std::string(f.function));
    }
    add(r->lines[line], *s);
    const char *label = hak_label_name(r->ctx, s->label);
    add(r->labels[line + " " + (label != nullptr ? label : "")], *s);
    add(r->stacks[stack], *s);
    add(r->sites[s->site], *s);
    add(r->all, *s);
    return true;
}

Read read(lua_State *L)
{
    Read r = {L, hak_lua_context(L), {}, {}, {}, {}, {}};
    CHECK(hak_profile_visit(r.ctx, read_one, &r) == 0);
    return r;
}

std::string run_a(lua_State *L, const std::string &code)
{
    const int top = lua_gettop(L);
    if (luaL_loadbuffer(L, code.data(), code.size(), "@a.lua") == LUA_OK) lua_pcall(L, 0, 1, 0);
    const char *text = lua_tostring(L, -1);
    std::string result = text != nullptr ? text : "";
    lua_settop(L, top);
    return result;
}

constexpr hak_lua_profile_mode SAMPLED = HAK_LUA_PROFILE_SAMPLED, EXACT = HAK_LUA_PROFILE_EXACT,
                               BY_LINE = HAK_LUA_PROFILE_LINES;

hak_lua_profile_options options(hak_lua_profile_mode mode, size_t mean = 0)
{
    hak_lua_profile_options o = HAK_LUA_PROFILE_OPTIONS_INIT;
    o.mode = mode;
    o.mean = mean;
    return o;
}

lua_State *state(hak_lua_profile_mode mode, size_t mean = 0, bool jit = false)
{
    lua_State *L = hak_lua_newstate_labelled(nullptr, nullptr);
    REQUIRE(L != nullptr);
    luaL_openlibs(L);
    if (!jit) run_a(L, "if jit then jit.off() end");
    lua_gc(L, LUA_GCCOLLECT, 0);
    const hak_lua_profile_options o = options(mode, mean);
    REQUIRE(hak_lua_profile_start(L, &o) == 0);
    return L;
}

hak_profile_info info_of(lua_State *L)
{
    hak_profile_info info = {};
    info.size = sizeof info;
    REQUIRE(hak_profile_stats(hak_lua_context(L), &info) == 0);
    return info;
}

// 1000 tables at line 3, 500 strings at line 5, and 200 tables that are garbage at line 6.
const char *const LINES = "keep = keep or {}\n"
                          "for i = 1, 1000 do\n"
                          "  keep[i] = {}\n"
                          "end\n"
                          "for i = 1001, 1500 do keep[i] = ('text'):rep(20) .. i end\n"
                          "for i = 1, 200 do local t = {} end\n";

} // namespace

TEST_CASE("exact, by line: every block at its line and label")
{
    const auto mode = GENERATE(EXACT, BY_LINE);
    lua_State *L = state(mode);
    run_a(L, LINES);
    run_a(L, "collectgarbage() collectgarbage()");
    Read r = read(L);
    CHECK(r.labels["a.lua:3 table"].live_blocks == 1000);
    CHECK(r.labels["a.lua:5 string"].live_blocks == 500);
    CHECK(r.labels["a.lua:6 table"].live_blocks == 0);
    CHECK(r.labels["a.lua:6 table"].alloc_blocks == 200);
    CHECK(r.labels["a.lua:3 table"].alloc_blocks == 1000);
    CHECK(r.all.error2 == 0);
    lua_close(L);
}

TEST_CASE("exact: the stacks sum to what the context has more than before")
{
    lua_State *L = hak_lua_newstate(nullptr);
    luaL_openlibs(L);
    lua_gc(L, LUA_GCCOLLECT, 0);
    lua_gc(L, LUA_GCCOLLECT, 0);
    lua_gc(L, LUA_GCSTOP, 0);
    const size_t before = stats_of(L).live_bytes;
    const hak_lua_profile_options o = options(EXACT);
    REQUIRE(hak_lua_profile_start(L, &o) == 0);
    lua_createtable(L, 5000, 0);
    for (int i = 1; i <= 5000; i++) {
        lua_createtable(L, 0, 0);
        lua_rawseti(L, -2, i);
    }
    const size_t after = stats_of(L).live_bytes;
    const double live = read(L).all.live_bytes, grown = (double)(after - before);
#ifdef HKL_LUAJIT
    // buffers from before that grew, with all of their size
    CHECK(live >= grown);
    CHECK(live < grown + (16 << 10));
#else
    CHECK(live == grown);
#endif
    lua_settop(L, 0);
    lua_close(L);
}

// Lua counts its bytes itself.
TEST_CASE("by line: live bytes are those that Lua has more than before, and the peak is the highest of them")
{
    lua_State *L = hak_lua_newstate(nullptr);
    auto count = [&] { return lua_gc(L, LUA_GCCOUNT, 0) * 1024.0 + lua_gc(L, LUA_GCCOUNTB, 0); };
    luaL_openlibs(L);
    run_a(L, "if jit then jit.off() end\n" + std::string(LINES)); // what grows once has grown
    run_a(L, "keep = nil");
    for (int i = 0; i < 3; i++)
        lua_gc(L, LUA_GCCOLLECT, 0);
    lua_gc(L, LUA_GCSTOP, 0);
    const hak_lua_profile_options o = options(BY_LINE);
    REQUIRE(hak_lua_profile_start(L, &o) == 0);
    const double before = count();
    run_a(L, LINES);
    // the table of strings is from before, and with all of its size where it grew
    const double high = read(L).all.live_bytes, grown = count() - before;
    CHECK(high >= grown);
    CHECK(high <= grown + (16 << 10));
    CHECK(read(L).all.alloc_bytes > high);
    run_a(L, "keep = nil");
    for (int i = 0; i < 3; i++)
        lua_gc(L, LUA_GCCOLLECT, 0);
    CHECK(read(L).all.live_bytes < 0.1 * high);
    CHECK(read(L).all.peak_bytes >= high);
    CHECK(read(L).all.peak_bytes < high + 4096); // and what the last call took
    lua_close(L);
}

// Code of the same size at the same place, line by line another one.
TEST_CASE("exact, by line: functions that come to lie where others were have their own lines")
{
    const auto mode = GENERATE(EXACT, BY_LINE);
    lua_State *L = state(mode);
    run_a(L, "for n = 1, 300 do\n"
             "  local code = ('\\n'):rep(n) .. 'for i = 1, 40 do local t = {} end'\n"
             "  assert((loadstring or load)(code, '=chunk'))()\n"
             "  code = nil\n"
             "  collectgarbage()\n"
             "end");
    Read r = read(L);
    for (int n = 1; n <= 300; n++)
        CHECK(r.labels["=chunk:" + std::to_string(n + 1) + " table"].alloc_blocks == 40);
    lua_close(L);
}

TEST_CASE("exact, by line: functions that come to lie where others were while no profile ran")
{
    const auto mode = GENERATE(EXACT, BY_LINE);
    lua_State *L = state(mode);
    const char *const code = "local n = ...\n"
                             "local f = (loadstring or load)(('\\n'):rep(n) ..\n"
                             "  'for i = 1, 40 do local t = {} end', '=chunk')\n"
                             "f()";
    for (int n = 1; n <= 40; n++) {
        REQUIRE(luaL_loadbuffer(L, code, strlen(code), "@a.lua") == 0);
        lua_pushinteger(L, n);
        REQUIRE(lua_pcall(L, 1, 0, 0) == 0);
        CHECK(read(L).labels["=chunk:" + std::to_string(n + 1) + " table"].alloc_blocks == 40);
        REQUIRE(hak_lua_profile_stop(L) == 0);
        lua_gc(L, LUA_GCCOLLECT, 0);
        const hak_lua_profile_options o = options(mode);
        REQUIRE(hak_lua_profile_start(L, &o) == 0);
    }
    lua_close(L);
}

TEST_CASE("exact, by line: lines of coroutines, of calls from C and under a hook, however often they are met")
{
    const auto mode = GENERATE(EXACT, BY_LINE);
    lua_State *L = state(mode);
    run_a(L, "local make = function()\n"
             "  for i = 1, 50 do local t = {} end\n"
             "  return ('x'):rep(50)\n"
             "end\n"
             "make()\n"
             "for i = 1, 30 do coroutine.wrap(make)() end\n"
             "for i = 1, 30 do pcall(make) end\n"
             "debug.sethook(function() end, 'l') for i = 1, 30 do make() end debug.sethook()\n"
             "local text = ('y'):rep(100)\n"
             "for i = 1, 80 do text:gsub('y+', function() return {} and 'z' end) end\n");
    Read r = read(L);
    CHECK(r.labels["a.lua:2 table"].alloc_blocks == 50 * 91);
    CHECK(r.labels["a.lua:10 table"].alloc_blocks == 80);
    lua_close(L);
}

TEST_CASE("sampled: estimates are within their errors, at the right lines")
{
    lua_State *L = state(SAMPLED, 2048);
    const size_t before = stats_of(L).live_bytes;
    run_a(L, "keep = {}\nfor i = 1, 40000 do\n  keep[i] = {}\nend\nfor i = 40001, 60000 do\n"
             "  keep[i] = ('text'):rep(20) .. i\nend");
    lua_gc(L, LUA_GCCOLLECT, 0);
    const double grown = (double)(stats_of(L).live_bytes - before);
    Read r = read(L);
    const Row tables = r.labels["a.lua:3 table"], strings = r.labels["a.lua:6 string"];
    CHECK(std::fabs(r.all.live_bytes - grown) < 4 * std::sqrt(r.all.error2) + 4096);
    CHECK(tables.live_blocks > 30000);
    CHECK(tables.live_blocks < 50000);
    CHECK(strings.live_blocks > 15000);
    CHECK(strings.live_blocks < 25000);
    CHECK(info_of(L).mean == 2048);
    lua_close(L);
}

TEST_CASE("stacks have the functions of the chain, and as many as asked for")
{
    const std::string code =
        "local function make(n) local t = {} for i = 1, n do t[i] = {} end return t end\n"
        "local function a() local t = make(300)\n return t end\n"
        "local function b() local t = make(200)\n return t end\n"
        "x = a()\ny = b()\n"
        "local function c() local z = a()\n return z end z = c()";
    for (unsigned depth : {1u, 2u, 32u}) {
        lua_State *L = hak_lua_newstate_labelled(nullptr, nullptr);
        luaL_openlibs(L);
        run_a(L, "if jit then jit.off() end");
        hak_lua_profile_options o = options(EXACT);
        o.depth = depth;
        REQUIRE(hak_lua_profile_start(L, &o) == 0);
        run_a(L, code);
        std::map<std::string, double> tables;
        Read r = read(L);
        for (const auto &[stack, row] : r.stacks)
            if (stack.rfind("a.lua:1", 0) == 0) tables[stack] += row.alloc_blocks;
        INFO(depth);
        if (depth == 1) CHECK(tables["a.lua:1"] >= 800);
        if (depth == 2) {
            CHECK(tables["a.lua:1 < a.lua:2 < "] >= 600);
            CHECK(tables["a.lua:1 < a.lua:4 < "] >= 200);
        }
        if (depth == 32) {
            CHECK(tables["a.lua:1 < a.lua:4 < a.lua:7"] >= 200);
            CHECK(tables["a.lua:1 < a.lua:2 < a.lua:6"] >= 300);
            CHECK(tables["a.lua:1 < a.lua:2 < a.lua:8 < a.lua:9"] >= 300);
        }
        lua_close(L);
    }
}

TEST_CASE("options out of range, a second start, stops without a profile")
{
    lua_State *L = hak_lua_newstate(nullptr);
    CHECK(hak_lua_profile_stop(L) == -1);
    hak_lua_frame f;
    CHECK(hak_lua_profile_frame(L, ~(uintptr_t)0, &f) == -1);
    for (int wrong = 0; wrong < 4; wrong++) {
        hak_lua_profile_options by_line = options(wrong == 3 ? (hak_lua_profile_mode)3 : BY_LINE);
        if (wrong == 0) by_line.depth = 2;
        if (wrong == 1) by_line.mean = 4096;
        if (wrong == 2) by_line.seed = 1;
        CHECK(hak_lua_profile_start(L, &by_line) == -1);
    }
    hak_lua_profile_options o = HAK_LUA_PROFILE_OPTIONS_INIT;
    o.depth = 65;
    CHECK(hak_lua_profile_start(L, &o) == -1);
    o = HAK_LUA_PROFILE_OPTIONS_INIT;
    o.mean = 10;
    CHECK(hak_lua_profile_start(L, &o) == -1);
    o = HAK_LUA_PROFILE_OPTIONS_INIT;
    o.size = 3;
    CHECK(hak_lua_profile_start(L, &o) == -1);
    CHECK(hak_lua_profile_start(L, nullptr) == 0);
    CHECK(hak_lua_profile_start(L, nullptr) == -1);
    CHECK(info_of(L).running);
    CHECK(info_of(L).mean == 512 << 10);
    CHECK(hak_lua_profile_stop(L) == 0);
    CHECK_FALSE(info_of(L).running);
    CHECK(hak_lua_profile_start(L, nullptr) == 0);
    lua_close(L);

    lua_State *other = luaL_newstate();
    CHECK(hak_lua_profile_start(other, nullptr) == -1);
    CHECK(hak_lua_profile_stop(other) == -1);
    lua_close(other);
}

TEST_CASE("options of profiles may come from another version of the header")
{
    alignas(hak_lua_profile_options) unsigned char bytes[sizeof(hak_lua_profile_options) + 32] = {};
    auto *o = reinterpret_cast<hak_lua_profile_options *>(bytes);
    *o = options(SAMPLED, 4096);
    bool taken = true;
    SECTION("an older one ends behind the mean")
    {
        o->size = offsetof(hak_lua_profile_options, mean) + sizeof o->mean;
        memset(bytes + o->size, 0xff, sizeof bytes - o->size);
    }
    SECTION("a newer one has more, which is not set")
    {
        o->size = sizeof bytes;
    }
    SECTION("a newer one has more, which is set")
    {
        o->size = sizeof bytes;
        bytes[sizeof bytes - 1] = 1;
        taken = false;
    }
    lua_State *L = hak_lua_newstate(nullptr);
    CHECK((hak_lua_profile_start(L, o) == 0) == taken);
    if (taken) CHECK(info_of(L).mean == 4096);
    lua_close(L);
}

TEST_CASE("after a stop nothing is added, frees are still counted, and a new start forgets")
{
    const auto mode = GENERATE(EXACT, BY_LINE);
    lua_State *L = state(mode);
    run_a(L, LINES);
    CHECK(hak_lua_profile_stop(L) == 0);
    const double made = read(L).labels["a.lua:3 table"].alloc_blocks;
    run_a(L, LINES);
    lua_gc(L, LUA_GCCOLLECT, 0);
    lua_gc(L, LUA_GCCOLLECT, 0);
    Read r = read(L);
    CHECK(r.labels["a.lua:3 table"].alloc_blocks == made);
    CHECK(r.labels["a.lua:3 table"].live_blocks == 0); // replaced by those of the second run
    const hak_lua_profile_options o = options(mode);
    CHECK(hak_lua_profile_start(L, &o) == 0);
    run_a(L, "\n\nlocal t = {}");
    r = read(L);
    CHECK(r.lines.count("a.lua:5") == 0);
    CHECK(r.labels["a.lua:3 table"].alloc_blocks == 1);
    lua_close(L);
}

TEST_CASE("labels, limits and scopes change while a profile runs")
{
    const auto mode = GENERATE(EXACT, BY_LINE);
    lua_State *L = state(mode);
    lua_pushcfunction(L, luaopen_hakmem);
    lua_setglobal(L, "open_hakmem");
    CHECK(run_a(L, "local h = open_hakmem()\n"
                   "keep = {}\n"
                   "h.label('mine', function() for i = 1, 300 do\n keep[i] = {} end end)\n"
                   "h.labels(false)\n"
                   "for i = 301, 500 do\n keep[i] = {} end\n"
                   "h.labels(true)\n"
                   "h.limit('64M')\n"
                   "for i = 501, 900 do\n keep[i] = {} end\n"
                   "return 'ok'") == "ok");
    Read r = read(L);
    CHECK(r.labels["a.lua:4 mine"].live_blocks >= 300);
    CHECK(r.labels["a.lua:7 "].live_blocks >= 200);
    CHECK(r.labels["a.lua:11 table"].live_blocks >= 400);
    lua_close(L);
}

TEST_CASE("states that end while profiled, by close and by drop, give everything back")
{
    for (hak_lua_profile_mode mode : {SAMPLED, EXACT, BY_LINE}) {
        for (bool drop : {false, true}) {
            Counted counted;
            lua_State *L = hak_lua_newstate_labelled(nullptr, &counted.options);
            luaL_openlibs(L);
            const hak_lua_profile_options o = options(mode, mode == SAMPLED ? 1024 : 0);
            REQUIRE(hak_lua_profile_start(L, &o) == 0);
            run_a(L, LINES);
            run_a(L, "co = coroutine.wrap(function() keep2 = {} coroutine.yield() end) co()");
            if (drop) CHECK(hak_lua_drop(L) == 0);
            else lua_close(L);
            CHECK(counted.used() == 0);
        }
    }
}

TEST_CASE("a context of the host's own: what the host takes from it, and its life after the state")
{
    hak_ctx *ctx = hak_ctx_new(nullptr, nullptr);
    lua_State *L = new_state(hak_lua_alloc, ctx);
    luaL_openlibs(L);
    run_a(L, "if jit then jit.off() end");
    const hak_lua_profile_options o = options(EXACT);
    REQUIRE(hak_lua_profile_start(L, &o) == 0);
    run_a(L, LINES);
    std::vector<void *> blocks;
    // between calls of Lua, and after a thread that is gone by then
    run_a(L, "local co = coroutine.wrap(function() local t = {} end) co() co = nil collectgarbage()");
    for (int i = 0; i < 100; i++)
        blocks.push_back(hak_alloc_cs(ctx, 1000, 0, (hak_site)&blocks));
    for (int i = 0; i < 100; i++)
        blocks.push_back(hak_alloc(ctx, 1000));
    Read r = read(L);
    CHECK(r.sites[(hak_site)&blocks].live_blocks == 100);
    CHECK(r.sites[(hak_site)&blocks].alloc_blocks == 100);
    CHECK(r.lines["none"].live_blocks >= 200);
    CHECK(r.lines["a.lua:3"].live_blocks >= 1000); // and the array
    lua_close(L);
    for (int i = 0; i < 1000; i++)
        blocks.push_back(hak_alloc(ctx, 100));
    for (void *p : blocks)
        hak_free(ctx, p);
    CHECK(live_blocks(ctx) == 0);
    hak_ctx_destroy(ctx);
}

TEST_CASE("a profile of the host's own goes on when a state ends whose profile has ended before")
{
    const auto mode = GENERATE(SAMPLED, EXACT, BY_LINE);
    const auto hosts = GENERATE(HAK_PROFILE_SAMPLED, HAK_PROFILE_EXACT, HAK_PROFILE_COUNTED);
    const bool again = GENERATE(false, true); // the state tries to begin one beside the host's
    CAPTURE(mode, hosts, again);
    hak_ctx *ctx = hak_ctx_new(nullptr, nullptr);
    lua_State *L = new_state(hak_lua_alloc, ctx);
    luaL_openlibs(L);
    const hak_lua_profile_options o = options(mode);
    REQUIRE(hak_lua_profile_start(L, &o) == 0);
    run_a(L, LINES);
    REQUIRE(hak_lua_profile_stop(L) == 0);
    hak_profile_options own = HAK_PROFILE_OPTIONS_INIT;
    own.mode = hosts;
    REQUIRE(hak_profile_start(ctx, &own) == 0);
    if (again) CHECK(hak_lua_profile_start(L, &o) == -1);
    lua_close(L);
    hak_profile_info info = {};
    info.size = sizeof info;
    REQUIRE(hak_profile_stats(ctx, &info) == 0);
    CHECK(info.running);
    CHECK(info.mode == hosts);
    hak_ctx_destroy(ctx);
}

TEST_CASE("by line: nothing of a state's profile is left in a context of the host's own")
{
    const bool stopped = GENERATE(false, true);
    const bool again = GENERATE(false, true); // it fails to begin another one
    if (again && !stopped) return;
    CAPTURE(stopped, again);
    hak_ctx *ctx = hak_ctx_new(nullptr, nullptr);
    lua_State *L = new_state(hak_lua_alloc, ctx);
    luaL_openlibs(L);
    const hak_lua_profile_options o = options(BY_LINE);
    REQUIRE(hak_lua_profile_start(L, &o) == 0);
    run_a(L, LINES);
    if (stopped) REQUIRE(hak_lua_profile_stop(L) == 0);
    if (again) {
        hak_lua_profile_options broken = o;
        broken.table_bytes = 1; // which the core refuses
        CHECK(hak_lua_profile_start(L, &broken) == -1);
    }
    lua_close(L);
    hak_profile_info info = {};
    info.size = sizeof info;
    CHECK(hak_profile_stats(ctx, &info) == -1);
    REQUIRE(hak_profile_start(ctx, nullptr) == 0); // which tells nobody that records go
    hak_ctx_destroy(ctx);
}

TEST_CASE("Lua stacks that grow while they are walked")
{
    // large stacks are blocks that move by the system, and their old place is gone at once
    const std::string code = "local function deep(n) if n == 0 then return 0 end return 1 + deep(n - 1) end\n"
                             "local function grow(n) local co = coroutine.wrap(deep) return co(n) end\n"
                             "local sum = 0\n"
                             "for round = 1, 20 do sum = sum + grow(round * 700) + deep(round * 700) end\n"
                             "return sum";
    for (hak_lua_profile_mode mode : {SAMPLED, EXACT, BY_LINE}) {
        lua_State *L = state(mode, mode == SAMPLED ? 1024 : 0);
        CHECK(run_a(L, code) == "294000");
        CHECK(read(L).all.alloc_bytes > 1e6);
        lua_close(L);
    }
}

TEST_CASE("allocations that fail under a limit, with the profile on")
{
    for (hak_lua_profile_mode mode : {SAMPLED, EXACT, BY_LINE}) {
        lua_State *L = state(mode, mode == SAMPLED ? 1024 : 0);
        REQUIRE(hak_lua_limit(L, 0, stats_of(L).committed_bytes + (4 << 20)) == 0);
        CHECK(run_a(L,
                    "local ok, e = pcall(function() local t = {}\n for i = 1, 1e7 do\n t[i] = {i} end end)\n"
                    "collectgarbage() collectgarbage()\n"
                    "return tostring(ok) .. ' ' .. tostring(e)") == "false not enough memory");
        CHECK(run_a(L, "local t = {} for i = 1, 100 do t[i] = {} end return #t") == "100");
        CHECK(read(L).lines["a.lua:3"].alloc_blocks > 1000);
        REQUIRE(hak_lua_close(L) == 0);
    }
}

TEST_CASE("much code: each line has its name and takes 120 bytes, which are not the state's")
{
    const int lines = 12000;
    std::string code = "keep = {}\n";
    for (int line = 2; line <= lines; line++)
        code += "keep[" + std::to_string(line) + "] = {}\n";
    size_t committed[2], metadata[2];
    for (const bool profiled : {false, true}) {
        lua_State *L = hak_lua_newstate_labelled(nullptr, nullptr);
        REQUIRE(L != nullptr);
        luaL_openlibs(L);
        const hak_lua_profile_options o = options(BY_LINE);
        if (profiled) REQUIRE(hak_lua_profile_start(L, &o) == 0);
        CHECK(run_a(L, code + "return 'ok'") == "ok");
        lua_gc(L, LUA_GCCOLLECT, 0);
        committed[profiled] = stats_of(L).committed_bytes;
        metadata[profiled] = stats_of(L).metadata_bytes;
        if (profiled) {
            hak_profile_info info;
            info.size = sizeof info;
            REQUIRE(hak_profile_stats(hak_lua_context(L), &info) == 0);
            CHECK(info.dropped_stacks + info.dropped_samples == 0);
            CHECK(info.stacks >= (size_t)lines - 1);
            CHECK((double)info.table_bytes / (double)info.stacks < 120);
            Read r = read(L);
            int named = 0;
            for (int line = 2; line <= lines; line++)
                named += r.lines.count("a.lua:" + std::to_string(line)) == 1;
            CHECK(named == lines - 1);
        }
        lua_close(L);
    }
    CHECK(metadata[1] == metadata[0]);
    CHECK((double)committed[1] < (double)committed[0] * 1.01);
}

// The part of what was allocated that has a line.
double known_part(const Read &r)
{
    double known = 0;
    for (const auto &[line, row] : r.lines)
        if (line != "none") known += row.alloc_bytes;
    return known / r.all.alloc_bytes;
}

TEST_CASE("whole programs give what they give without a profile")
{
    for (hak_lua_profile_mode mode : {SAMPLED, EXACT, BY_LINE}) {
        lua_State *L = state(mode, mode == SAMPLED ? 1024 : 0, true);
        CHECK(run_file(L, "whole.lua") == WHOLE_RESULT);
        CHECK(known_part(read(L)) > 0.98);
        lua_close(L);
    }
}

TEST_CASE("lines are known when return addresses collide")
{
    for (hak_lua_profile_mode mode : {EXACT, BY_LINE})
        for (size_t step : {1, 2, 3}) {
            lua_State *L = state(mode);
            test_crowd_sites(step);
            CHECK(run_file(L, "whole.lua") == WHOLE_RESULT);
            CHECK(known_part(read(L)) > 0.98);
            lua_close(L);
        }
}

#ifdef HKL_LUAJIT

TEST_CASE("traces: the line where they are, and handlers of their events are the program's alone")
{
    const auto mode = GENERATE(EXACT, BY_LINE);
    lua_State *L = state(mode, 0, true);
    CHECK(run_a(L, "jit.opt.start('hotloop=3')\n"
                   "local seen = 0\n"
                   "local keep = {}\n"
                   "local function work(n)\n"
                   "  local m = n * 2\n"
                   "  for i = 1, m do\n"
                   "    keep[i] = {i}\n"
                   "  end\n"
                   "end\n"
                   "work(2000)\n"
                   "return #keep") == "4000");
    Read r = read(L);
    CHECK(r.labels["a.lua:6 table"].live_blocks + r.labels["a.lua:6 array"].live_blocks < 50);
    CHECK(r.labels["a.lua:7 table"].live_blocks > 3900);
    CHECK(
        run_a(L,
              "local h = debug.getregistry()._VMEVENTS or {} local n = 0 for _ in pairs(h) do n = n + 1 end "
              "return n") == "0");
    run_a(L, "jit.flush()");
    lua_close(L);
}

// The new ones have the numbers of those that are gone.
TEST_CASE("traces: those that were compiled while no profile ran are not taken for earlier ones")
{
    const auto mode = GENERATE(EXACT, BY_LINE);
    lua_State *L = state(mode, 0, true);
    CHECK(run_a(L, "jit.opt.start('hotloop=3')\n"
                   "keep = {}\n"
                   "function a()\n"
                   "  for i = 1, 2000 do keep[i] = {i} end\n"
                   "end\n"
                   "function b()\n"
                   "  for i = 1, 2000 do keep[i] = {i} end\n"
                   "end\n"
                   "a()") == "");
    CHECK(read(L).labels["a.lua:4 table"].alloc_blocks > 1900);
    REQUIRE(hak_lua_profile_stop(L) == 0);
    run_a(L, "jit.flush() b()");
    const hak_lua_profile_options o = options(mode);
    REQUIRE(hak_lua_profile_start(L, &o) == 0);
    run_a(L, "b()");
    Read r = read(L);
    CHECK(r.labels["a.lua:4 table"].alloc_blocks == 0);
    CHECK(r.labels["a.lua:7 table"].alloc_blocks > 1900);
    run_a(L, "jit.flush()");
    lua_close(L);
}

#endif

TEST_CASE("a profile gives a state without labels none")
{
    lua_State *L = hak_lua_newstate(nullptr);
    REQUIRE(L != nullptr);
    REQUIRE(hak_lua_profile_start(L, nullptr) == 0);
    CHECK(hak_label_name(hak_lua_context(L), 1) == nullptr);
    lua_close(L);
}

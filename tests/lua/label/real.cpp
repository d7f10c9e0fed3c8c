// A real program, states in threads, the scope, and what happens when labels come late.
#include "label_test.h"

extern "C" {
#include "crowd.h"
#include "state.h"
}

#include <atomic>
#include <thread>

using namespace test;

namespace
{

// luacheck of the package lua-check over its own sources, as a library.
const char *const LUACHECK =
    "package.path = '/usr/share/lua/5.1/?.lua;/usr/share/lua/5.1/?/init.lua;' .. package.path "
    "local ok, luacheck = pcall(require, 'luacheck') "
    "if not ok then return 'absent: ' .. luacheck end "
    "local text = {} "
    "for _, name in ipairs {'parser', 'lexer', 'options', 'format', 'main'} do "
    "  local f = assert(io.open('/usr/share/lua/5.1/luacheck/' .. name .. '.lua')) "
    "  text[#text + 1] = f:read('*a') "
    "  f:close() "
    "end "
    "reports = luacheck.check_strings(text) "
    "return reports.fatals == 0";

const char *const MIXED =
    "local t = {} for i = 1, 3000 do t[i] = {x = i, name = 'n' .. i, f = function() return i end, i, i} end "
    "keep = t return #t == 3000";

} // namespace

TEST_CASE("hardly anything of a real program is unknown")
{
    LabelledState state;
    std::string result = run(state.L, LUACHECK);
    if (result.rfind("absent", 0) == 0) {
        WARN("luacheck is not installed (Debian package: lua-check): " << result);
        return;
    }
    REQUIRE(result == "true");
    Bytes bytes = label_bytes(state.L);
    Growth growth(Bytes(), bytes);
    INFO(growth.text());
    CHECK(growth.share("other") < 0.01);
    CHECK(growth.share("") == 0);
    CHECK(growth.share("table") > 0.05);
    CHECK(growth.share("hash") > 0.1);
    CHECK(growth.share("proto") > 0.01);
    CHECK(growth.share("string") > 0.005);
}

TEST_CASE("a state that is collected gives its labels back")
{
    LabelledState state;
    lua_gc(state.L, LUA_GCCOLLECT, 0);
    Bytes before = label_bytes(state.L);
    REQUIRE(run(state.L, MIXED) == "true");
    CHECK(label_bytes(state.L)["hash"] > before["hash"] + 3000 * 24);
    run(state.L, "keep = nil");
    for (int i = 0; i < 4; i++)
        lua_gc(state.L, LUA_GCCOLLECT, 0);
    Bytes after = label_bytes(state.L);
    for (const char *name : {"table", "hash", "array", "closure", "upvalue"}) {
        INFO(name);
        CHECK(after[name] <= before[name] + 2048);
    }
}

// Live blocks by label after MIXED in a new state; none when it failed. Blocks, not bytes: in a small heap a
// block may have a gap of 8 bytes behind it, which depends on what was allocated before. Without strings: 5.3
// keeps those of its API by the address of the text, which may be on the stack.
static Bytes blocks_of_mixed()
{
    Bytes blocks;
    lua_State *L = hak_lua_newstate_labelled(nullptr, nullptr);
    if (L == nullptr) return blocks;
    luaL_openlibs(L);
    run(L, "if jit then jit.off() end");
    if (run(L, MIXED) == "true") {
        hak_label_info infos[64];
        int n = hak_labels_stats(hak_lua_context(L), infos, 64);
        for (int i = 0; i < n; i++)
            blocks[infos[i].name] = (long long)infos[i].live_blocks;
        blocks.erase("string");
    }
    lua_close(L);
    return blocks;
}

static std::vector<Bytes> blocks_of_threads(size_t count)
{
    std::vector<Bytes> blocks(count);
    std::vector<std::thread> threads;
    for (Bytes &b : blocks)
        threads.emplace_back([&b] { b = blocks_of_mixed(); });
    for (std::thread &t : threads)
        t.join();
    return blocks;
}

TEST_CASE("states of several threads learn once and agree")
{
    std::vector<Bytes> blocks = blocks_of_threads(4);
    for (const Bytes &b : blocks) {
        REQUIRE(!b.empty());
        CHECK(b.at("other") == 0);
        CHECK(b.at("closure") >= 3000);
        CHECK(b == blocks[0]);
    }
}

TEST_CASE("labels are the same when return addresses collide")
{
    Bytes expected = blocks_of_mixed();
    REQUIRE(!expected.empty());
    for (size_t step : {1, 2, 3}) {
        test_crowd_sites(step);
        CHECK(blocks_of_mixed() == expected);
    }
}

TEST_CASE("labels are the same when what is known is thrown out by others all the time")
{
    Bytes expected = blocks_of_mixed();
    REQUIRE(!expected.empty());
    std::atomic<bool> done = false;
    std::thread other([&done] {
        for (size_t step = 1; !done; step = step % 5 + 1) {
            test_crowd_sites(step);
            std::this_thread::yield();
        }
    });
    std::vector<Bytes> blocks = blocks_of_threads(3);
    done = true;
    other.join();
    for (const Bytes &b : blocks)
        CHECK(b == expected);
}

TEST_CASE("a scope goes before the kind")
{
    LabelledState state;
    hkl_state *st = hkl_state_of(state.L);
    REQUIRE(st != nullptr);
    hak_label mine = hak_label_define(st->ctx, "mine");
    luaL_loadstring(state.L, "kept = {} for i = 1, 1000 do kept[i] = {} end");
    lua_gc(state.L, LUA_GCSTOP, 0);
    Bytes before = label_bytes(state.L);
    st->scope = mine;
    lua_call(state.L, 0, 0);
    st->scope = 0;
    Growth growth(before, label_bytes(state.L));
    INFO(growth.text());
    CHECK(growth.share("mine") == 1.0);
}

TEST_CASE("labels can come and go in a running state")
{
    lua_State *L = hak_lua_newstate(nullptr);
    REQUIRE(L != nullptr);
    luaL_openlibs(L);
    REQUIRE(run(L, MIXED) == "true");
    Bytes before = label_bytes(L);
    CHECK(before[""] > 3000 * 24);
    REQUIRE(hak_lua_labels(L, true) == 0);
    run(L, "keep2 = keep");
    REQUIRE(run(L, MIXED) == "true");
    Bytes labelled = label_bytes(L);
    CHECK(labelled["hash"] > 3000 * 24);
    CHECK(labelled["other"] == 0);
    REQUIRE(hak_lua_labels(L, false) == 0);
    run(L, "keep3 = keep");
    REQUIRE(run(L, MIXED) == "true");
    CHECK(label_bytes(L)["hash"] <= labelled["hash"]);
    lua_close(L);
}

// How states that hakmem made end: whole, after the last finalizer, whatever finalizers do; and block by
// block where somebody could miss a free.
#include "lua_test.h"

#include <hakmem/profile.h>

#include <string>

extern "C" {
#include "end.h"

void __real_lua_setallocf(lua_State *L, lua_Alloc f, void *ud);

static int endings; // states that went over to the lua_Alloc that frees nothing

void __wrap_lua_setallocf(lua_State *L, lua_Alloc f, void *ud)
{
    if (f == hkl_end_alloc) endings++;
    __real_lua_setallocf(L, f, ud);
}
}

using namespace test;

namespace
{

std::string noted; // what finalizers told

int note(lua_State *L)
{
    noted += lua_tostring(L, 1);
    noted += ' ';
    return 0;
}

lua_State *prepare(lua_State *L)
{
    with_objects(L, "note", note);
    noted = "";
    endings = 0;
    return L;
}

lua_State *stock()
{
    lua_State *L = luaL_newstate();
#if LUA_VERSION_NUM >= 504
    lua_setwarnf(
        L, [](void *, const char *, int) {}, nullptr);
#endif
    return prepare(L);
}

// What the finalizers of the program note in a state of the runtime's own.
std::string noted_by_stock(const char *program)
{
    lua_State *L = stock();
    REQUIRE(run(L, program) == "nil");
    lua_close(L);
    REQUIRE(noted != "");
    return noted;
}

// Closes L, which is to end whole or not.
void close(lua_State *L, const Counted &counted, bool whole = true)
{
    endings = 0;
    lua_close(L);
    CHECK(endings == (whole ? 1 : 0));
    CHECK(counted.used() == 0);
}

// What programs may leave to their end.
const char *const PROGRAMS_THAT_END[] = {
    "for i = 1, 5 do keep[i] = object(function() note(tostring(i)) end) end",
    // finalizers allocate
    "keep[1] = object(function() local t = {} for n = 1, 50 do t[n] = { n, ('x'):rep(n) } end "
    "note(tostring(#t)) end)",
    // they run coroutines
    "keep[1] = object(function() note('a') end) keep[2] = object(function() "
    "local c = coroutine.wrap(function() for n = 1, 3 do coroutine.yield({ n }) end end) "
    "c() note('c' .. c()[1]) end)",
    // they fail, with any value
    "for i = 1, 300 do keep[i] = object(function() if i % 3 == 0 then error({ i }) elseif i % 3 == 1 then "
    "error('x' .. "
    "i) end note('.') end) end",
    // they keep what is finalized, and themselves
    "for i = 1, 20 do keep[i] = object(function(o) saved = { saved, o } note('s') end) end",
    // they make objects with finalizers, which do the same
    "local function again(n) return function() note('n' .. n) if n > 0 then keep[n] = object(again(n - 1)) "
    "end end "
    "end keep[0] = object(again(3)) keep[20] = object(again(30))",
    // a coroutine that is in the middle of its work
    "keep[1] = coroutine.wrap(function() local o = object(function() note('in') end) coroutine.yield() "
    "return o end) "
    "keep[1]() object(function() note('garbage') end)",
    // the debug library is there
    "debug.sethook(function() keep.n = (keep.n or 0) + 1 end, '', 1) keep[1] = object(function() note('h') "
    "end)",
};

// Before 5.4 the collector goes on while finalizers run, or may be called, and calls the others from one of
// them.
const char *const PROGRAMS_THAT_COLLECT[] = {
    "for i = 1, 50 do keep[i] = object(function() local t = {} for n = 1, 500 do t[n] = { n, ('x'):rep(n) } "
    "end "
    "note(tostring(#t)) end) end",
    "keep[1] = object(function() local s = ('x'):rep(3000000) .. 'y' note(tostring(#s)) end)",
    "for i = 1, 9 do keep[i] = object(function() collectgarbage() note('c' .. i) end) end",
};

} // namespace

TEST_CASE("finalizers that collect see what those of any other state see")
{
    for (const char *program : PROGRAMS_THAT_COLLECT) {
        CAPTURE(program);
        const std::string usual = noted_by_stock(program);
        Counted counted;
        lua_State *L = prepare(hak_lua_newstate(&counted.options));
        REQUIRE(run(L, program) == "nil");
        lua_close(L);
        CHECK((endings == 1 || LUA_VERSION_NUM < 504));
        CHECK(counted.used() == 0);
        CHECK(noted == usual);
    }
}

TEST_CASE("a state ends whole, and its finalizers see what those of any other state see")
{
    for (const char *program : PROGRAMS_THAT_END) {
        CAPTURE(program);
        const std::string usual = noted_by_stock(program);
        for (int kind = 0; kind < 4; kind++) {
            CAPTURE(kind);
            Counted counted;
            lua_State *L = prepare(kind % 2 == 0 ? hak_lua_newstate(&counted.options)
                                                 : hak_lua_newstate_labelled(nullptr, &counted.options));
            if (kind >= 2) REQUIRE(hak_lua_limit(L, 0, stats_of(L).committed_bytes + 2 * MiB) == 0);
            REQUIRE(run(L, program) == "nil");
            close(L, counted);
            CHECK(noted == usual);
        }
    }
}

TEST_CASE("a state in a space of many ends whole and leaves the others as they are")
{
    Counted counted;
    hak_space *space = hak_space_new(nullptr);
    lua_State *all[20];
    for (lua_State *&L : all) {
        L = prepare(hak_lua_newstate_in(space, &counted.options));
        REQUIRE(run_file(L, "whole.lua") == WHOLE_RESULT);
    }
    endings = 0;
    for (int i = 0; i < 20; i += 2)
        lua_close(all[i]);
    for (int i = 1; i < 20; i += 2) {
        CHECK(run_file(all[i], "whole.lua") == WHOLE_RESULT);
        CHECK(hak_ctx_check(hak_lua_context(all[i]), nullptr, nullptr));
        lua_close(all[i]);
    }
    CHECK(endings == 20);
    CHECK(counted.used() == 0);
    hak_space_delete(space);
}

TEST_CASE("a finalizer makes and closes a state of its own")
{
    Counted counted;
    lua_State *L = prepare(hak_lua_newstate(&counted.options));
    lua_pushlightuserdata(L, &counted.options);
    lua_pushcclosure(
        L,
        [](lua_State *outer) {
            lua_State *inner = hak_lua_newstate((hak_options *)lua_touserdata(outer, lua_upvalueindex(1)));
            luaL_openlibs(inner);
            noted += run(inner, "return #('x'):rep(100000)");
            lua_close(inner);
            return 0;
        },
        1);
    lua_setglobal(L, "inner");
    REQUIRE(run(L, "keep[1] = object(function() inner() note('done') end)") == "nil");
    endings = 0;
    lua_close(L);
    CHECK(endings == 2);
    CHECK(noted == "100000done ");
    CHECK(counted.used() == 0);
}

TEST_CASE("what a debug option or a profile looks at is freed block by block")
{
    for (unsigned debug : {(unsigned)HAK_DEBUG_CHECK, (unsigned)HAK_DEBUG_POISON, (unsigned)HAK_DEBUG_CANARY,
                           (unsigned)HAK_DEBUG_QUARANTINE, (unsigned)HAK_DEBUG_TRACE,
                           (unsigned)HAK_DEBUG_RANDOM, (unsigned)HAK_DEBUG_GUARD}) {
        CAPTURE(debug);
        Counted counted;
        counted.options.debug = debug;
        lua_State *L = prepare(hak_lua_newstate(&counted.options));
        CHECK(run_file(L, "whole.lua") == WHOLE_RESULT);
        close(L, counted, false);
    }
    for (bool of_lua : {false, true}) {
        CAPTURE(of_lua);
        Counted counted;
        lua_State *L = prepare(hak_lua_newstate(&counted.options));
        if (of_lua) REQUIRE(hak_lua_profile_start(L, nullptr) == 0);
        else REQUIRE(hak_profile_start(hak_lua_context(L), nullptr) == 0);
        CHECK(run_file(L, "whole.lua") == WHOLE_RESULT);
        close(L, counted, false);
    }
}

TEST_CASE(
    "the blocks of a state beside others, of a shared or a host's context, and behind a wrapper are freed")
{
    SECTION("beside")
    {
        Counted counted;
        lua_State *L = prepare(hak_lua_newstate(&counted.options));
        void *ud;
        const lua_Alloc f = lua_getallocf(L, &ud);
        lua_State *other = new_state(f, ud);
        REQUIRE(other != nullptr);
        luaL_openlibs(other);
        lua_close(other);
        close(L, counted, false);
    }
    SECTION("shared")
    {
        Counted counted;
        counted.options.shared = true;
        close(prepare(hak_lua_newstate(&counted.options)), counted, false);
    }
    SECTION("the host's")
    {
        hak_ctx *ctx = hak_ctx_new(nullptr, nullptr);
        lua_State *L = prepare(new_state(hak_lua_alloc, ctx));
        REQUIRE(hak_lua_limit(L, 0, 64 * MiB) == 0);
        endings = 0;
        lua_close(L);
        CHECK(endings == 0);
        CHECK(live_blocks(ctx) == 0);
        hak_ctx_destroy(ctx);
    }
    SECTION("wrapped")
    {
        static lua_Alloc inner;
        Counted counted;
        lua_State *L = prepare(hak_lua_newstate(&counted.options));
        void *ud;
        inner = lua_getallocf(L, &ud);
        lua_setallocf(
            L, [](void *of, void *p, size_t old, size_t n) { return inner(of, p, old, n); }, ud);
        close(L, counted, false);
    }
}

TEST_CASE("a program that takes the binding's object from the registry, or calls its finalizer, ends nothing")
{
    const bool calls = GENERATE(false, true);
    CAPTURE(calls);
    Counted counted;
    lua_State *L = prepare(hak_lua_newstate(&counted.options));
    lua_getfield(L, LUA_REGISTRYINDEX, "hakmem.end");
    REQUIRE_FALSE(lua_isnil(L, -1));
    REQUIRE(luaL_getmetafield(L, -1, "__gc") != 0);
    lua_setglobal(L, "final");
    lua_setglobal(L, "it");
    if (!calls) {
        lua_pushnil(L);
        lua_setfield(L, LUA_REGISTRYINDEX, "hakmem.end");
    }
    run(L, calls ? "final(it) final() coroutine.wrap(final)(it)" : "it = nil");
    lua_gc(L, LUA_GCCOLLECT, 0);
    lua_gc(L, LUA_GCCOLLECT, 0);
    CHECK(endings == 0);
    const size_t live = stats_of(L).live_bytes;
    REQUIRE(run(L, "for i = 1, 50000 do keep[i] = { i } end keep = {}") == "nil");
    lua_gc(L, LUA_GCCOLLECT, 0);
    CHECK(stats_of(L).live_bytes < live + MiB);
    close(L, counted, calls);
}

TEST_CASE("each page that a new state cannot have leaves no state, or one that works and ends")
{
    for (const bool labels : {false, true}) {
        int made = 0;
        for (size_t most = 8 * KiB; made < 3; most += 4 * KiB) {
            REQUIRE(most < MiB);
            CAPTURE(labels, most);
            Counted counted;
            hak_quota_set(counted.quota, most);
            lua_State *L = labels ? hak_lua_newstate_labelled(nullptr, &counted.options)
                                  : hak_lua_newstate(&counted.options);
            if (L != nullptr) {
                made++;
                CHECK(lua_gettop(L) == 0);
                hak_quota_set(counted.quota, 0);
                lua_close(prepare(L));
            }
            CHECK(counted.used() == 0);
        }
    }
}

#ifdef HKL_LUAJIT
TEST_CASE("a state that a late finalizer makes with the lua_Alloc of the one that ends outlives it")
{
    // the context stays until the process ends, as hakmem/lua.h says
    static lua_State *late;
    late = nullptr;
    lua_State *L = prepare(hak_lua_newstate(nullptr));
    lua_register(L, "late", [](lua_State *ending) {
        void *ud;
        const lua_Alloc f = lua_getallocf(ending, &ud);
        late = new_state(f, ud);
        return 0;
    });
    REQUIRE(run(L, "keep[1] = object(function() keep[2] = object(late) end)") == "nil");
    lua_close(L);
    REQUIRE(late != nullptr);
    luaL_openlibs(late);
    CHECK(run_file(late, "whole.lua") == WHOLE_RESULT);
    lua_close(late);
}
#endif

// Limits: the error, the state after it, and the collector that is hurried in time.
#include "lua_test.h"

extern "C" {
#include "cfi.h"
}

#include <algorithm>
#include <cstdlib>

using namespace test;

namespace
{

struct State {
    lua_State *L = hak_lua_newstate(nullptr);
    State()
    {
        REQUIRE(L != nullptr);
        luaL_openlibs(L);
    }
    State(const State &) = delete;
    State &operator=(const State &) = delete;
    ~State()
    {
        lua_close(L);
    }
    operator lua_State *() const
    {
        return L;
    }
    size_t committed() const
    {
        return stats_of(L).committed_bytes;
    }
};

// About 1 MB live, then 200 rounds of garbage of about 100 KB.
const char *const ROUNDS = "local keep = {} for i = 1, 12000 do keep[i] = { i, 'k' .. i } end "
                           "for round = 1, 200 do local t = {} "
                           "for i = 1, 1000 do t[i] = { i, round .. ':' .. i } end end "
                           "return #keep";

// Strings until there is no more memory, each from a function further up than the last C function: there
// LuaJIT has no top of the stack. The locals around are looked at, and sample() is called each time.
const char *const STRINGS =
    "if jit then jit.off() end "
    "local keep = {} for i = 1, 30000 do keep[i] = false end "
    "local function inner(i) local s = tostring(i + 0.5) return s end "
    "local function outer(i, a, b, c, d, e, f) "
    "  local g, h = 'g', 'h' local ok, s = pcall(inner, i) "
    "  return a == 'a' and b == 'b' and c == 'c' and d == 'd' and e == 'e' and f == 'f' and "
    "    g == 'g' and h == 'h', ok, s end "
    "for i = 1, 30000 do "
    "  sample() local whole, ok, s = outer(i, 'a', 'b', 'c', 'd', 'e', 'f') "
    "  if not (whole and ok) then keep = nil collectgarbage() "
    "    return not whole and 'a local of a caller is gone' or s end "
    "  keep[i] = s end "
    "return 'end'";

size_t sampled; // the most committed bytes that sample() saw
int calls;      // of sample(); statistics of each would take most of the time

int sample(lua_State *L)
{
    if (calls++ % 16 == 0) sampled = std::max(sampled, stats_of(L).committed_bytes);
    return 0;
}

int samples_left; // until growth is stopped

int sample_and_stop(lua_State *L)
{
    if (--samples_left == 0) lua_pushboolean(L, hak_lua_limit(L, 0, 1) == 0);
    return samples_left == 0;
}

} // namespace

TEST_CASE("over the limit there is an error that can be caught, and the state goes on")
{
    State L;
    size_t limit = L.committed() + (2 << 20);
    REQUIRE(hak_lua_limit(L, 0, limit) == 0);
    for (int round = 0; round < 5; round++) {
        CHECK(run(L, "local t = {} for i = 1, 1e7 do t[i] = { i } end") == "not enough memory");
        CHECK(L.committed() <= limit);
        CHECK(run(L, "return string.rep('x', 1e8)").find("not enough memory") != std::string::npos);
        lua_gc(L, LUA_GCCOLLECT, 0); // even loading a chunk needs memory
        CHECK(run(L, "local t = {} for i = 1, 1000 do t[i] = { i } end return #t") == "1000");
    }
    CHECK(stats_of(L).failures > 0);
    CHECK(stats_of(L).hard_limit == limit);
    // Lifted, the same is no error.
    REQUIRE(hak_lua_limit(L, 0, 0) == 0);
    CHECK(run(L, "local t = {} for i = 1, 1e5 do t[i] = { i } end return #t") == "100000");
    CHECK(run_file(L, "whole.lua") == WHOLE_RESULT);
}

TEST_CASE("refused strings leave the callers' locals alone, and not a byte above the limit is taken")
{
    const bool labels = GENERATE(false, true);
    const bool by_quota = GENERATE(false, true); // the quota refuses, below the limit
    const bool soft_alone = GENERATE(false, true);
    int refused = 0;
    if (soft_alone && !by_quota) return; // nothing is refused
    // Each limit collects the garbage of each string that does not fit, so a way to refuse takes a third of the
    // limits, and two ways share each limit. The long tier takes all.
    const bool all = std::getenv("HAKMEM_EVERY_LIMIT") != nullptr;
    const size_t first = all ? 0 : (labels + by_quota + soft_alone) % 3, step = all ? 1 : 3;
    for (size_t more = (800 + 40 * first) << 10; more < 2000 << 10; more += (40 * step) << 10) {
        CAPTURE(labels, by_quota, soft_alone, more);
        Counted contexts;
        lua_State *L = hak_lua_newstate(&contexts.options);
        REQUIRE(L != nullptr);
        luaL_openlibs(L);
        lua_register(L, "sample", sample);
        if (labels) REQUIRE(hak_lua_labels(L, true) == 0);
        const size_t limit = stats_of(L).committed_bytes + more;
        const size_t hard = soft_alone ? 0 : by_quota ? limit * 2 : limit;
        REQUIRE(hak_lua_limit(L, soft_alone ? limit * 2 : 0, hard) == 0);
        if (by_quota) hak_quota_set(contexts.quota, contexts.used() + more);
        const size_t most = by_quota ? contexts.used() + more : hak_quota_used(contexts.quota) + more;
        sampled = 0;
        const std::string result = run(L, STRINGS);
        if (result == "not enough memory") refused++;
        else CHECK(result == "end");
        CHECK(sampled > 0);
        CHECK(sampled <= limit);
        CHECK(stats_of(L).peak_bytes <= limit);
        CHECK(stats_of(L).hard_limit == hard);
        CHECK(hak_quota_peak(contexts.quota) <= most);
        lua_close(L);
        CHECK(contexts.used() == 0);
    }
    CHECK(refused > 0);
}

TEST_CASE("refused strings leave the callers' locals alone under the smallest limit")
{
    const bool labels = GENERATE(false, true);
    int refused = 0;
    for (int samples = 100; samples <= 10000; samples += 300) {
        CAPTURE(labels, samples);
        State L;
        lua_register(L, "sample", sample_and_stop);
        if (labels) REQUIRE(hak_lua_labels(L, true) == 0);
        samples_left = samples;
        const std::string result = run(L, STRINGS);
        if (result == "not enough memory") refused++;
        else CHECK(result == "end");
        CHECK(stats_of(L).hard_limit == 1);
        hak_lua_limit(L, 0, 0);
    }
    CHECK(refused > 0);
}

#if LUA_VERSION_NUM == 501
TEST_CASE("each hard limit has a soft one below it or at it")
{
    State L;
    for (size_t hard : {size_t{1}, size_t{99}, size_t{100}, size_t{64} << 20, SIZE_MAX}) {
        REQUIRE(hak_lua_limit(L, 0, hard) == 0);
        CHECK(stats_of(L).soft_limit > 0);
        CHECK(stats_of(L).soft_limit <= hard);
        if (hard > 1000) CHECK(stats_of(L).soft_limit / (hard / 1000) == Approx(700).margin(1));
    }
}
#endif

TEST_CASE("an error in Lua's own pcall leaves the program running")
{
    State L;
    REQUIRE(hak_lua_limit(L, 0, L.committed() + (1 << 20)) == 0);
    CHECK(run(L, "local ok, e = pcall(function() local t = {} while true do t[#t + 1] = { #t } end end) "
                 "collectgarbage() "
                 "return tostring(ok) .. ': ' .. e") == "false: not enough memory");
}

TEST_CASE("garbage does not count against the limit")
{
    bool labels = GENERATE(false, true);
    size_t needed;
    {
        State L;
        size_t start = L.committed();
        run(L,
            "keep = {} for i = 1, 12000 do keep[i] = { i, 'k' .. i } end collectgarbage() collectgarbage()");
        needed = L.committed() - start;
    }
    State L;
    if (labels) REQUIRE(hak_lua_labels(L, true) == 0);
    REQUIRE(hak_lua_limit(L, 0, L.committed() + needed + needed / 2) == 0);
    CHECK(run(L, ROUNDS) == "12000");
}

#if LUA_VERSION_NUM >= 502
TEST_CASE("garbage of a stopped collector does not count either, on 5.2 with a soft limit alone")
{
    const bool soft = GENERATE(false, true);
    State L;
    const size_t hard = L.committed() + (2 << 20);
    REQUIRE(hak_lua_limit(L, soft ? hard - (1 << 20) : 0, hard) == 0);
    const std::string result =
        run(L, "collectgarbage('stop') for i = 1, 200000 do local t = {i} end return 'end'");
    CHECK(result == (LUA_VERSION_NUM == 502 && !soft ? "not enough memory" : "end"));
    lua_gc(L, LUA_GCCOLLECT, 0);
    CHECK(run(L, "return #('x'):rep(100000)") == "100000");
}
#endif

// Sets it; what it was before.
static int pace_of(lua_State *L, int pace)
{
#if LUA_VERSION_NUM >= 505
    return lua_gc(L, LUA_GCPARAM, LUA_GCPSTEPMUL, pace);
#else
    return lua_gc(L, LUA_GCSETSTEPMUL, pace);
#endif
}

TEST_CASE("a program's own pace of collection is back when memory is no longer short")
{
    State L;
    int pace = pace_of(L, 300);
    (void)pace;
    REQUIRE(hak_lua_limit(L, 0, L.committed() + (3 << 20)) == 0);
    run(L, ROUNDS);
    run(L, "collectgarbage() for i = 1, 20000 do local t = { i } end collectgarbage()");
    CHECK(pace_of(L, 300) == Approx(300).margin(4));
    // and when the limit goes while the collector is hurried
    run(L, "t = {} while true do t[#t + 1] = { #t } end");
    REQUIRE(hak_lua_limit(L, 0, 0) == 0);
    CHECK(pace_of(L, 300) == Approx(300).margin(4));
}

TEST_CASE("a pace that the program sets while the collector is hurried stays")
{
    const bool freed = GENERATE(false, true); // else the limit goes
    State L;
    REQUIRE(hak_lua_limit(L, 0, L.committed() + (3 << 20)) == 0);
    run(L, "local t = {} while true do t[#t + 1] = { #t } end");
    int pace = pace_of(L, 300);
#if LUA_VERSION_NUM == 501
    CHECK(pace == 5000);
#else
    (void)pace;
#endif
    // looked at again while memory is short, and when it no longer is
    run(L, "local t = {} while true do t[#t + 1] = { #t } end");
    if (freed) {
        lua_gc(L, LUA_GCCOLLECT, 0);
        CHECK(run(L, "local t = {} for i = 1, 20000 do t[i % 100] = { i } end return #t") == "99");
    } else {
        REQUIRE(hak_lua_limit(L, 0, 0) == 0);
    }
    CHECK(pace_of(L, 300) == Approx(300).margin(4));
}

TEST_CASE("from the soft limit on the collector is hurried")
{
    auto peak_with = [](size_t soft) {
        State L;
        // by itself it would wait for 10 times the live size
        REQUIRE(run(L, LUA_VERSION_NUM >= 505 ? "collectgarbage('param', 'pause', 1000)"
                                              : "collectgarbage('setpause', 1000)") == "nil");
        if (soft != 0) REQUIRE(hak_lua_limit(L, L.committed() + soft, 0) == 0);
        CHECK(run(L, ROUNDS) == "12000");
        return stats_of(L).peak_bytes;
    };
    size_t idle = peak_with(0), hurried = peak_with(3 << 20);
    INFO("peak " << idle << " without, " << hurried << " with");
    CHECK(hurried < idle / 2);
}

namespace
{

bool allocated;

// A global with a finalizer that needs more than the limit, which is set here, leaves; it says so in
// `allocated`.
void limit_below_a_finalizer(lua_State *L)
{
    allocated = false;
    luaL_openlibs(L);
    lua_newuserdata(L, 8);
    lua_newtable(L);
    lua_pushcfunction(L, [](lua_State *state) {
        lua_newuserdata(state, 4 << 20);
        allocated = true;
        return 0;
    });
    lua_setfield(L, -2, "__gc");
    lua_setmetatable(L, -2);
    lua_setglobal(L, "object");
    REQUIRE(hak_lua_limit(L, 0, stats_of(L).committed_bytes + (1 << 20)) == 0);
}

} // namespace

#ifdef HKL_LUAJIT
TEST_CASE("what a host has set stays when LuaJIT's collector is given more than the limit")
{
    Counted counted;
    const size_t limit = 8 * MiB;
    lua_State *L = hak_lua_newstate(&counted.options);
    REQUIRE(L != nullptr);
    REQUIRE(open_libraries(L) == LUA_OK);
    REQUIRE(hak_lua_limit(L, 0, limit) == 0);
    hak_ctx *ctx = hak_lua_context(L);
    hak_stats before = {}, after = {};
    before.size = after.size = sizeof before;
    REQUIRE(hak_ctx_stats(ctx, &before) == 0);
    int crossed = 0;
    hak_pressure_fn *const fn = [](hak_ctx *, void *user, size_t, size_t) { ++*static_cast<int *>(user); };
    REQUIRE(hak_limit(ctx, before.soft_limit, limit, fn, &crossed) == 0);
    // Strings, whose table grows with them; then all memory is filled, and most strings go: what is free lies
    // between those that stay, and the table shrinks.
    REQUIRE(run(L, "local kept, list = {} "
                   "for i = 1, 70000 do kept[i] = 'string' .. i end "
                   "pcall(function() while true do list = { list } end end) "
                   "for i = 1, #kept do if i % 8 ~= 0 then kept[i] = false end end "
                   "collectgarbage() return 'ok'") == "ok");
    CHECK(hak_quota_peak(counted.quota) > limit); // or this test sees nothing
    void *user = nullptr;
    CHECK(hak_limit_callback(ctx, &user) == fn);
    CHECK(user == &crossed);
    CHECK(crossed > 0);
    REQUIRE(hak_ctx_stats(ctx, &after) == 0);
    CHECK(after.soft_limit == before.soft_limit);
    CHECK(after.hard_limit == limit);
    REQUIRE(hak_lua_close(L) == 0);
}
#endif

TEST_CASE("a finalizer may allocate while the state is closed under a limit")
{
    lua_State *L = hak_lua_newstate(nullptr);
    limit_below_a_finalizer(L);
    SECTION("with hak_lua_close")
    {
        CHECK(hak_lua_close(L) == 0);
        CHECK(allocated);
    }
    SECTION("with lua_close")
    {
        lua_close(L);
#ifdef HKC_CFI_WALK
        CHECK(allocated); // elsewhere it fails, and all the rest is done
#endif
    }
}

namespace
{

// An allocator of the host's, around that of the binding.
struct Wrapper {
    lua_Alloc inner;
    void *ud;
    size_t calls;
    static void *call(void *self, void *ptr, size_t osize, size_t nsize)
    {
        auto *w = static_cast<Wrapper *>(self);
        w->calls++;
        return w->inner(w->ud, ptr, osize, nsize);
    }
};

} // namespace

TEST_CASE("a state with another allocator around is closed without limits by its host")
{
    Counted counted;
    lua_State *L = hak_lua_newstate(&counted.options);
    limit_below_a_finalizer(L);
    hak_ctx *ctx = hak_lua_context(L);
    Wrapper wrapper = {};
    wrapper.inner = lua_getallocf(L, &wrapper.ud);
    lua_setallocf(L, Wrapper::call, &wrapper);
    CHECK(hak_lua_context(L) == nullptr);
    CHECK(hak_lua_limit(L, 0, 1 << 20) == -1);
    CHECK(run(L, "return #('x'):rep(1000)") == "1000");
    CHECK(hak_lua_close(L) == -1);
    CHECK(run(L, "return #('y'):rep(1000)") == "1000");
    SECTION("by the context")
    {
        REQUIRE(hak_limit(ctx, 0, 0, nullptr, nullptr) == 0);
        lua_close(L);
    }
    SECTION("by putting the allocator back")
    {
        lua_setallocf(L, wrapper.inner, wrapper.ud);
        REQUIRE(hak_lua_close(L) == 0);
    }
    CHECK(allocated);
    CHECK(wrapper.calls > 0);
    CHECK(counted.used() == 0); // the context went with the last block
}

TEST_CASE("a limit below what is committed stops growth, and nothing else")
{
    State L;
    const size_t committed = L.committed();
    REQUIRE(hak_lua_limit(L, 0, 1) == 0);
    CHECK(run(L, "local t = {} while true do t[#t + 1] = { #t } end") == "not enough memory");
    CHECK(L.committed() <= committed);
    CHECK(stats_of(L).hard_limit == 1);
    REQUIRE(hak_lua_limit(L, 0, 0) == 0);
    CHECK(run_file(L, "whole.lua") == WHOLE_RESULT);
}

TEST_CASE("a soft limit above the hard one is refused")
{
    State L;
    REQUIRE(hak_lua_limit(L, 0, 64 << 20) == 0);
    CHECK(hak_lua_limit(L, 2 << 20, 1 << 20) == -1);
    CHECK(stats_of(L).hard_limit == 64 << 20);
    CHECK(hak_lua_limit(L, 2 << 20, 0) == 0);
    CHECK(stats_of(L).hard_limit == 0);
    CHECK(stats_of(L).soft_limit == 2 << 20);
}

// Prints the figures of docs/guide/lua.md.
TEST_CASE("the smallest limit under which a program runs", "[.figures]")
{
    auto smallest = [](bool hurried) {
        for (size_t limit = 1 << 20;; limit += 50 << 10) {
            State L;
            if (hurried) REQUIRE(hak_lua_limit(L, 0, limit) == 0);
            else REQUIRE(hak_limit(hak_lua_context(L), 0, limit, nullptr, nullptr) == 0);
            if (run(L, ROUNDS) == "12000") return limit >> 10;
        }
    };
    State L;
    run(L, "keep = {} for i = 1, 12000 do keep[i] = { i, 'k' .. i } end collectgarbage() collectgarbage()");
    hak_ctx_flush(hak_lua_context(L));
    std::printf("live data alone %zu KiB, hard limit alone %zu KiB, hak_lua_limit %zu KiB\n",
                L.committed() >> 10, smallest(false), smallest(true));
}

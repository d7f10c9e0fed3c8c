// Fuzz target: chunks of Lua in a state under a limit that the input chooses, with labels, profiles and
// refused pages. A chunk succeeds or raises an error that says why; the state goes on, and its heap is sound
// and within the limit.
#include "input.h"

#include "fake_os.h"

#include <hakmem/lua.h>
#include <hakmem/profile.h>

extern "C" {
#include <lauxlib.h>
#include <lualib.h>
#if LUA_VERSION_NUM == 501
#include <luajit.h>
#endif
}

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

using namespace test;

namespace
{

// @ = a number of the input's below 40, $ = one below 3000, & = one below 100000. Each one ends by itself.
const char *const CHUNKS[] = {
    "t[@] = ('x'):rep($) .. @",
    "t[@] = ('long'):rep(&)",
    "for i = 1, $ do t[i % 400] = {i, n = i} end",
    "for i = 1, $ do t[i % 400] = 'key' .. i end",
    "local g = {} for i = 1, & do g[i] = i end t[@] = g",
    "local g = {} for i = 1, $ do g['k' .. i] = {g} end t[@] = g",
    "t[@] = nil t[@] = nil t[@] = nil",
    "t = {}",
    "t[@] = function(a) return function() a = a + 1 return a, t[@] end end",
    "local f = t[@] for i = 1, $ do if type(f) == 'function' then t[@] = f(i) end end",
    "for i = 1, @ do t[i] = coroutine.wrap(function(...) for j = 1, @ do coroutine.yield({...}) end end) end",
    "local c = t[@] if type(c) == 'function' then for i = 1, @ do c(i) end end",
    "local function deep(n) if n > 0 then return 1 + deep(n - 1) end return 0 end t[@] = deep($)",
    "local function deep(n) if n > 0 then return 1 + deep(n - 1) end error('eeee' .. ('e'):rep($)) end "
    "deep($)",
    "local g = {} for i = 1, $ do g[i] = tostring(i * 1.5) end t[@] = table.concat(g, ',')",
    "local s = ('ab1'):rep($) t[@] = s:gsub('%d', '%0%0') t[@] = s:upper() .. s:reverse()",
    "local s = 'return {0' for i = 1, $ do s = s .. ',' .. i end t[@] = load_(s .. '}')",
    "local f = load_(('local a = 1 '):rep($)) t[@] = f and 1",
    "t[@] = string.format('%5d %s %q', @, ('q'):rep($), ('n'):rep(@))",
    "local g = {} for i = 1, $ do g[i] = (i * 7919) % 1009 end table.sort(g, function(a, b) return a > b "
    "end)",
    "t[@] = setmetatable({}, {__index = function(_, k) return {k} end, __gc = function() t[@] = ('f'):rep($) "
    "end})",
    "t[@] = setmetatable({}, {__mode = 'kv'}) for i = 1, $ do t[@] = {} end",
    "for i = 1, $ do local ok, why = pcall(error, {i}) t[@] = why end",
    "local ok, why = pcall(function() local g = {} for i = 1, 1e7 do g[i] = {i} end end) t[@] = why",
    "local ok, why = pcall(string.rep, 'x', 1e9) t[@] = why",
    "local ok, why = pcall(function() local s = 'x' while true do s = s .. s end end) t[@] = why",
    "local function gather(...) return {...}, select('#', ...) end t[@] = gather(unpack_(t, 1, @))",
    "local ok = pcall(function() return unpack_({}, 1, &) end) t[@] = ok",
    "collectgarbage()",
    "collectgarbage('step', @)",
    "collectgarbage('stop') for i = 1, $ do t[@] = {i} end collectgarbage('restart')",
    "pace_('pause', 50 + $) pace_('stepmul', 50 + $)",
    "t[@] = string.dump(function() return t end)",
    "for w in ('some words of it'):rep(@):gmatch('%a+') do t[w] = (t[w] or '') .. w end",
    "local n = 0 for k, v in pairs(t) do n = n + 1 if n % 2 == 0 then t[k] = nil end end",
    "if ffi then local c = ffi.new('char[?]', 1 + $) for i = 1, $ do t[@] = ffi.string(c, i % 9) end t[@] = "
    "c end",
    "h.trim() t[@] = h.stats()",
};

[[noreturn]] void wrong(const char *what, const char *more = "")
{
    std::fprintf(stderr, "fuzz_lua: %s%s%s\n", what, *more ? ": " : "", more);
    std::abort();
}

// What may be said of a chunk of above.
bool is_expected(const char *why)
{
    for (const char *words : {"not enough memory", "stack overflow", "error in ", "too many", "limit", "eeee",
                              "yield", "coroutine", "overflow", "next", "unable to dump"})
        if (std::strstr(why, words)) return true;
    return false;
}

struct Run {
    Input input;
    FakeOs os;
    hak_space *space = nullptr;
    lua_State *L = nullptr;
    size_t hard = 0;
    bool refuses = false; // pages, and not only what is over the limit
    // LuaJIT's compiled code, which can crash where pages are refused (docs/guide/lua.md).
    bool compiles = false;

    Run(const uint8_t *data, size_t size) : input(data, size)
    {
        hak_space_options pages = HAK_SPACE_OPTIONS_INIT;
        pages.os = os.table();
        pages.reserve = 16 * MiB << input.below(4);
        space = hak_space_new(&pages);
        if (!space) wrong("no space");
        hak_options options = HAK_OPTIONS_INIT;
        options.mode = (hak_mode)input.below(4);
        options.on_error = [](void *, hak_error, const void *, const char *what) { wrong("misuse", what); };
        size_t debug = input.below(6);
        options.debug = debug == 0   ? HAK_DEBUG_CHECK
                        : debug == 1 ? HAK_DEBUG_POISON
                        : debug == 2 ? HAK_DEBUG_GUARD
                                     : 0;
        hak_quota *quota = hak_quota_new(nullptr, 0);
        options.quota = quota;
        // While the state opens, too.
        compiles = input.below(2) && LUA_VERSION_NUM == 501;
        refuses = input.below(2) && !compiles;
        if (refuses && input.below(2)) os.fail_nth(1 + input.below(60));
        L = input.below(2) ? hak_lua_newstate_labelled(space, &options)
                           : hak_lua_newstate_in(space, &options);
        if (L && open()) {
            while (input.left())
                step();
            check_end();
        }
        os.fail_nth(0), os.fail_each(0);
        if (L) end();
        if (hak_quota_used(quota)) wrong("a context is left");
        hak_quota_delete(quota);
        hak_space_delete(space);
        std::string report = os.close();
        if (!report.empty()) wrong("pages", report.c_str());
    }

    // In 5.1 and LuaJIT neither a function in C nor a chunk comes to be without memory that may be short.
    int protect(lua_CFunction function, void *user)
    {
#if LUA_VERSION_NUM == 501
        return lua_cpcall(L, function, user);
#else
        lua_pushcfunction(L, function);
        lua_pushlightuserdata(L, user);
        return lua_pcall(L, 1, 0, 0);
#endif
    }

    int run_text(const std::string &text)
    {
        return protect(
            [](lua_State *state) {
                if (luaL_loadstring(state, (const char *)lua_touserdata(state, 1))) lua_error(state);
                lua_call(state, 0, 0);
                return 0;
            },
            (void *)text.c_str());
    }

    bool open()
    {
        lua_CFunction libraries = [](lua_State *state) {
            luaL_openlibs(state);
            lua_pushcfunction(state, luaopen_hakmem);
            lua_call(state, 0, 1);
            lua_setglobal(state, "h");
            const char *names = "t = {} load_ = loadstring or load unpack_ = unpack or table.unpack "
                                "ffi = jit and require('ffi') "
                                "pace_ = _VERSION == 'Lua 5.5' "
                                "and function(what, n) collectgarbage('param', what, n) end "
                                "or function(what, n) collectgarbage('set' .. what, n) end";
            if (luaL_loadstring(state, names)) lua_error(state);
            lua_call(state, 0, 0);
            return 0;
        };
        // Some chunks take what there is.
        if (protect(libraries, nullptr) || !set_limit(4 * MiB)) return false;
        if (!compiles) compiler_off();
        return true;
    }

    void compiler_off()
    {
#if LUA_VERSION_NUM == 501
        luaJIT_setmode(L, 0, LUAJIT_MODE_ENGINE | LUAJIT_MODE_OFF);
#endif
    }

    std::string chunk()
    {
        std::string text;
        for (const char *at = CHUNKS[input.below(sizeof CHUNKS / sizeof *CHUNKS)]; *at; at++) {
            size_t below = *at == '@' ? 40 : *at == '$' ? 3000 : *at == '&' ? 100000 : 0;
            text += below ? std::to_string(input.below(below)) : std::string(1, *at);
        }
        return text;
    }

    void execute()
    {
        std::string text = chunk();
        int top = lua_gettop(L);
        if (run_text(text)) {
            // No conversion: it could fail outside of a pcall.
            const char *why = lua_type(L, -1) == LUA_TSTRING ? lua_tostring(L, -1) : "";
            if (*why && !is_expected(why)) {
                std::fprintf(stderr, "%s\n", text.c_str());
                wrong("an error", why);
            }
        }
        lua_settop(L, top);
        operations.count++;
    }

    void step()
    {
        switch (input.below(24)) {
        case 0:
            set_limit(64 * KiB + input.below(3 * MiB));
            break;
        case 1:
            hak_lua_labels(L, input.below(2));
            break;
        case 2:
            profile();
            break;
        case 3:
            os.fail_nth(refuses ? input.below(30) : 0);
            break;
        case 4:
            os.fail_each(refuses && input.below(3) == 0 ? 2 + input.below(20) : 0);
            break;
        case 5:
            hak_ctx_tick(hak_lua_context(L), os.now += 600000000);
            break;
        default:
            execute();
        }
        // LuaJIT's table of strings may pass it while it shrinks (docs/guide/lua.md).
        if (stats().committed_bytes > hard + (LUA_VERSION_NUM == 501 ? 256 * KiB : 0))
            wrong("the limit is passed");
    }

    bool set_limit(size_t most)
    {
        size_t soft = input.below(3) == 0 ? input.below(most) : 0, before = stats().committed_bytes;
        if (hak_lua_limit(L, soft, most)) return false; // as it was
        hard = std::max(most, before);
        return true;
    }

    void profile()
    {
        hak_lua_profile_options options = HAK_LUA_PROFILE_OPTIONS_INIT;
        options.mode = (hak_lua_profile_mode)input.below(3);
        options.mean = options.mode == HAK_LUA_PROFILE_SAMPLED ? 64 << input.below(12) : 0;
        options.depth = (unsigned)input.below(20);
        options.table_bytes = input.below(2) ? 64 * KiB << input.below(6) : 0;
        if (input.below(3)) hak_lua_profile_start(L, &options);
        else hak_lua_profile_stop(L);
    }

    hak_stats stats()
    {
        hak_stats s = {};
        s.size = sizeof s;
        if (hak_ctx_stats(hak_lua_context(L), &s)) wrong("stats");
        return s;
    }

    void check_end()
    {
        os.fail_nth(0), os.fail_each(0);
        hak_lua_limit(L, 0, 0);
        hak_lua_profile_stop(L);
        lua_settop(L, 0);
        if (run_text("t = nil local s = ('x'):rep(100000) collectgarbage() assert(#s == 100000)"))
            wrong("the state does not go on", lua_type(L, -1) == LUA_TSTRING ? lua_tostring(L, -1) : "");
        hak_ctx *ctx = hak_lua_context(L);
        if (!hak_ctx_check(ctx, nullptr, nullptr)) wrong("hak_ctx_check");
        hak_label_info infos[256];
        int n = hak_labels_stats(ctx, infos, 256);
        size_t sum = 0;
        for (int i = 0; i < n; i++)
            sum += infos[i].live_bytes;
        if (sum != stats().live_bytes) wrong("sums of labels");
    }

    void end()
    {
        if (input.below(2)) lua_close(L);
        else if (hak_lua_drop(L)) wrong("drop");
    }
};

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    Run run(data, size);
    return 0;
}

// Labelled states, and what their labels hold.
#pragma once

#include "lua_test.h"

#include <map>
#include <vector>

namespace test
{

struct LabelledState {
    lua_State *L = hak_lua_newstate_labelled(nullptr, nullptr);

    LabelledState()
    {
        REQUIRE(L != nullptr);
        luaL_openlibs(L);
    }
    LabelledState(const LabelledState &) = delete;
    LabelledState &operator=(const LabelledState &) = delete;
    ~LabelledState()
    {
        lua_close(L);
    }
};

using Bytes = std::map<std::string, long long>;

// Live bytes by label; they must sum to those of the context.
inline Bytes label_bytes(lua_State *L)
{
    hak_ctx *ctx = hak_lua_context(L);
    std::vector<hak_label_info> infos((size_t)hak_labels_stats(ctx, nullptr, 0));
    hak_labels_stats(ctx, infos.data(), infos.size());
    Bytes bytes;
    long long sum = 0;
    for (const hak_label_info &info : infos) {
        bytes[info.name] = (long long)info.live_bytes;
        sum += (long long)info.live_bytes;
    }
    REQUIRE(sum == (long long)stats_of(L).live_bytes);
    return bytes;
}

// What grew between two snapshots, by label.
struct Growth {
    Bytes bytes;
    long long total = 0;

    Growth(const Bytes &before, const Bytes &after)
    {
        for (const auto &[name, now] : after) {
            auto was = before.find(name);
            long long grown = now - (was == before.end() ? 0 : was->second);
            bytes[name] = grown;
            total += grown > 0 ? grown : 0;
        }
    }
    double share(const char *name) const
    {
        auto found = bytes.find(name);
        return found == bytes.end() || found->second <= 0 ? 0 : (double)found->second / (double)total;
    }
    std::string text() const
    {
        std::string s;
        for (const auto &[name, grown] : bytes)
            s += name + "=" + std::to_string(grown) + " ";
        return s;
    }
};

// Runs a chunk that returns a function, then the function; what it made is the growth, with or without what
// the collector can take back.
inline Growth growth_of(lua_State *L, const std::string &code, bool with_garbage = false)
{
    REQUIRE(luaL_loadstring(L, code.c_str()) == LUA_OK);
    INFO(code);
    if (lua_pcall(L, 0, 1, 0) != LUA_OK) FAIL(lua_tostring(L, -1));
    lua_gc(L, LUA_GCCOLLECT, 0);
    lua_gc(L, LUA_GCCOLLECT, 0);
    lua_gc(L, LUA_GCSTOP, 0);
    Bytes before = label_bytes(L);
    if (lua_pcall(L, 0, 0, 0) != LUA_OK) FAIL(lua_tostring(L, -1));
    if (!with_garbage) lua_gc(L, LUA_GCCOLLECT, 0);
    Bytes after = label_bytes(L);
    lua_gc(L, LUA_GCRESTART, 0);
    return Growth(before, after);
}

} // namespace test

/* The Lua module `hakmem`. */
#include "adopt.h"
#include "hakmem/lua.h"
#include "snapshot.h"
#include "state.h"

#include <lauxlib.h>

#include <errno.h>
#include <string.h>

static void push_count(lua_State *L, uint64_t n)
{
#if LUA_VERSION_NUM >= 503
    lua_pushinteger(L, (lua_Integer)n);
#else
    lua_pushnumber(L, (lua_Number)n);
#endif
}

static hak_ctx *check_context(lua_State *L)
{
    hak_ctx *ctx = hak_lua_context(L);
    if (ctx == NULL) luaL_error(L, "hakmem: the allocator of this state was replaced by another one");
    return ctx;
}

/* stats(): the numbers are those from before its table. */
static int module_stats(lua_State *L)
{
    hak_stats s = {.size = sizeof s};
    hak_ctx_stats(check_context(L), &s);
    const struct {
        const char *name;
        uint64_t value;
    } fields[] = {
        {"live_bytes", s.live_bytes},
        {"live_blocks", s.live_blocks},
        {"peak_bytes", s.peak_bytes},
        {"committed_bytes", s.committed_bytes},
        {"metadata_bytes", s.metadata_bytes},
        {"cached_bytes", s.cached_bytes},
        {"released_bytes", s.released_bytes},
        {"reserved_bytes", s.reserved_bytes},
        {"idle_bytes", s.idle_bytes},
        {"big_bytes", s.big_bytes},
        {"big_blocks", s.big_blocks},
        {"soft_limit", s.soft_limit},
        {"hard_limit", s.hard_limit},
        {"failures", s.failures},
        {"os_calls", s.os_calls},
    };
    const int count = (int)(sizeof fields / sizeof fields[0]);
    lua_createtable(L, 0, count);
    for (int i = 0; i < count; i++) {
        push_count(L, fields[i].value);
        lua_setfield(L, -2, fields[i].name);
    }
    return 1;
}

/* Pushes the result of labels(), all zero, and above it the table of each label. */
static void push_empty_labels(lua_State *L, const hk_lua_snapshot *snap, int index[])
{
    luaL_checkstack(L, snap->count + 4, "too many labels");
    lua_createtable(L, 0, snap->count);
    const int result = lua_gettop(L);
    for (int i = 0; i < snap->count; i++) {
        lua_createtable(L, 0, 2);
        index[snap->labels[i].label] = lua_gettop(L);
        lua_pushvalue(L, -1);
        lua_setfield(L, result, snap->labels[i].name);
        push_count(L, 0);
        lua_setfield(L, -2, "live_bytes");
        push_count(L, 0);
        lua_setfield(L, -2, "live_blocks");
    }
}

/* labels() -> table, live bytes. All tables are made before the numbers are taken, so that they are in
 * them, and nothing is allocated from then until the return. labels(on) switches. */
static int module_labels(lua_State *L)
{
    hak_ctx *ctx = check_context(L);
    if (!lua_isnoneornil(L, 1)) {
        luaL_checktype(L, 1, LUA_TBOOLEAN);
        bool on = lua_toboolean(L, 1);
        if (hak_lua_labels(L, on) != 0)
            return luaL_error(L, "hakmem.labels: no memory for labels, or the platform has none");
        return 0;
    }
    hk_lua_snapshot snap;
    int index[HAK_LABELS_MAX + 1];
    int count;
    lua_settop(L, 0);
    hk_lua_snapshot_take(&snap, ctx);
    do { /* again if making the tables brought a new label */
        lua_settop(L, 0);
        count = snap.count;
        push_empty_labels(L, &snap, index);
        hk_lua_snapshot_take(&snap, ctx);
    } while (snap.count != count);
    for (int i = 0; i < count; i++) {
        int row = index[snap.labels[i].label];
        push_count(L, snap.labels[i].live_bytes);
        lua_setfield(L, row, "live_bytes");
        push_count(L, snap.labels[i].live_blocks);
        lua_setfield(L, row, "live_blocks");
    }
    lua_settop(L, 1);
    push_count(L, snap.stats.live_bytes);
    return 2;
}

static int module_limit(lua_State *L)
{
    check_context(L);
    lua_Number n = luaL_checknumber(L, 1);
    if (!(n >= 0 && n < (lua_Number)PTRDIFF_MAX && (lua_Number)(size_t)n == n))
        return luaL_argerror(L, 1, "a whole number of bytes expected, 0 = no limit");
    if (hak_lua_limit(L, 0, (size_t)n) != 0)
        return luaL_error(L, "hakmem.limit: no memory for the bookkeeping");
    return 0;
}

static int module_trim(lua_State *L)
{
    check_context(L);
    push_count(L, hak_lua_trim(L));
    return 1;
}

/* label(name, fn, ...) -> results of fn(...) */
static int module_label(lua_State *L)
{
    hak_ctx *ctx = check_context(L);
    size_t length;
    const char *name = luaL_checklstring(L, 1, &length);
    luaL_argcheck(L, length >= 1 && length <= 63 && strlen(name) == length, 1,
                  "a name of 1 to 63 bytes expected");
    if (!lua_isfunction(L, 2)) {
        luaL_argcheck(L, luaL_getmetafield(L, 2, "__call"), 2, "a function expected");
        lua_pop(L, 1);
    }
    const int arguments = lua_gettop(L) - 2;
    hk_lua_state *st = hk_lua_state_of(L);
    if (st == NULL || st->labels == NULL) {
        lua_call(L, arguments, LUA_MULTRET);
        return lua_gettop(L) - 1;
    }
    hak_label label = hak_label_define(ctx, name);
    if (label == 0)
        return luaL_error(L, "hakmem.label: no room for label '%s' (%d are possible)", name, HAK_LABELS_MAX);
    hak_label outer = st->scope;
    st->scope = label;
    int failed = lua_pcall(L, arguments, LUA_MULTRET, 0);
    st->scope = outer;
    if (failed) return lua_error(L);
    return lua_gettop(L) - 1;
}

static int module_report(lua_State *L)
{
    check_context(L);
    const char *path = luaL_optstring(L, 1, NULL);
    FILE *out = path != NULL ? fopen(path, "w") : stderr;
    if (out == NULL) return luaL_error(L, "hakmem.report: cannot write to '%s': %s", path, strerror(errno));
    int failed = hak_lua_report(L, out);
    if (path != NULL && fclose(out) != 0) failed = -1;
    if (failed) return luaL_error(L, "hakmem.report: cannot write to '%s'", path != NULL ? path : "stderr");
    return 0;
}

int luaopen_hakmem(lua_State *L)
{
    static const luaL_Reg functions[] = {
        {"stats", module_stats}, {"labels", module_labels}, {"limit", module_limit},
        {"trim", module_trim},   {"label", module_label},   {"report", module_report},
    };
    const int count = (int)(sizeof functions / sizeof functions[0]);
    if (hak_lua_context(L) == NULL) {
        const char *trouble = hk_lua_adopt(L);
        if (trouble != NULL) return luaL_error(L, "hakmem: %s", trouble);
    }
    lua_createtable(L, 0, count + 1);
    for (int i = 0; i < count; i++) {
        lua_pushcfunction(L, functions[i].func);
        lua_setfield(L, -2, functions[i].name);
    }
    lua_pushstring(L, hak_version());
    lua_setfield(L, -2, "_VERSION");
    return 1;
}

/* The Lua module `hakmem`. */
#include "profile/module.h"
#include "adopt.h"
#include "common/report.h"
#include "hakmem/learn.h"
#include "hakmem/lua.h"
#include "label.h"
#include "module_check.h"
#include "shared.h"
#include "state.h"

#include <lauxlib.h>

#ifdef __APPLE__
#include <dlfcn.h>
#endif
#include <errno.h>
#include <string.h>

/* stats(): the numbers are those from before its table. */
static int module_stats(lua_State *L)
{
    hak_stats s = {.size = sizeof s};
    hak_ctx_stats(hkl_check_context(L), &s);
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
        {"retained_bytes", s.retained_bytes},
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
        hkl_push_count(L, fields[i].value);
        lua_setfield(L, -2, fields[i].name);
    }
    return 1;
}

/* Pushes the result of labels(), all zero, and above it the table of each label. */
static void push_empty_labels(lua_State *L, const hkc_report *now, int index[])
{
    luaL_checkstack(L, now->label_count + 4, "too many labels");
    lua_createtable(L, 0, now->label_count);
    const int result = lua_gettop(L);
    for (int i = 0; i < now->label_count; i++) {
        lua_createtable(L, 0, 2);
        index[now->labels[i].label] = lua_gettop(L);
        lua_pushvalue(L, -1);
        lua_setfield(L, result, now->labels[i].name);
        hkl_push_count(L, 0);
        lua_setfield(L, -2, "live_bytes");
        hkl_push_count(L, 0);
        lua_setfield(L, -2, "live_blocks");
    }
}

/* labels() -> table, live bytes. All tables are made before the numbers are taken, so that they are in
 * them, and nothing is allocated from then until the return. labels(on) switches. */
static int module_labels(lua_State *L)
{
    hak_ctx *ctx = hkl_check_context(L);
    if (!lua_isnoneornil(L, 1)) {
        luaL_checktype(L, 1, LUA_TBOOLEAN);
        bool on = lua_toboolean(L, 1);
        if (hak_lua_labels(L, on) != 0)
            return luaL_error(L, "hakmem.labels: no memory for labels, or the platform has none");
        return 0;
    }
    hkc_report now = {.name = ""};
    hak_label_info labels[HAK_LABELS_MAX + 1];
    int index[HAK_LABELS_MAX + 1];
    int count;
    lua_settop(L, 0);
    hkc_report_take(&now, ctx, labels);
    do { /* again if making the tables brought a new label */
        lua_settop(L, 0);
        count = now.label_count;
        push_empty_labels(L, &now, index);
        hkc_report_take(&now, ctx, labels);
    } while (now.label_count != count);
    for (int i = 0; i < count; i++) {
        int row = index[labels[i].label];
        hkl_push_count(L, labels[i].live_bytes);
        lua_setfield(L, row, "live_bytes");
        hkl_push_count(L, labels[i].live_blocks);
        lua_setfield(L, row, "live_blocks");
    }
    lua_settop(L, 1);
    hkl_push_count(L, now.stats.live_bytes);
    return 2;
}

/* limit(size) -> committed bytes. */
static int module_limit(lua_State *L)
{
    hak_ctx *ctx = hkl_check_context(L);
    if (hak_lua_limit(L, 0, hkl_check_size(L, 1, 1, "no limit")) != 0)
        return luaL_error(L, "hakmem.limit: no memory for the bookkeeping");
    hak_stats s = {.size = sizeof s};
    hak_ctx_stats(ctx, &s);
    hkl_push_count(L, s.committed_bytes);
    return 1;
}

static int module_trim(lua_State *L)
{
    hkl_check_context(L);
    hkl_push_count(L, hak_lua_trim(L));
    return 1;
}

/* tick([n]): n units of the program's work are done; the allocator may look after itself. */
static int module_tick(lua_State *L)
{
    hkl_check_context(L);
    hak_ctx *ctx = hak_lua_context(L);
    lua_Integer n = luaL_optinteger(L, 1, 0);
    luaL_argcheck(L, n >= 0, 1, "not below 0 expected");
    hak_learner *learner = hak_ctx_learner(ctx);
    if (learner) hak_learner_progress(learner, (uint64_t)n);
    hak_ctx_tick(ctx, 0);
    return 0;
}

/* The label of that name; `other` for names that come when all labels are taken, or no memory is there. */
static hak_label label_of(const hkl_state *st, const char *name)
{
    hak_label label = 0;
    name = hkl_labels_name(name);
    if (!hak_label_name(st->ctx, HAK_LABELS_MAX)) {
        label = hak_label_define(st->ctx, name);
    } else { /* to define one more is an error to the context */
        for (label = HAK_LABELS_MAX; label != 0; label--)
            if (strcmp(hak_label_name(st->ctx, label), name) == 0) break;
    }
    return label != 0 ? label : hkl_labels_other(st->labels);
}

/* label(name, fn, ...) -> results of fn(...) */
static int module_label(lua_State *L)
{
    hkl_check_context(L);
    size_t length;
    const char *name = luaL_checklstring(L, 1, &length);
    luaL_argcheck(L, length >= 1 && length <= 63 && strlen(name) == length, 1,
                  "a name of 1 to 63 bytes expected");
    if (!lua_isfunction(L, 2)) {
        luaL_argcheck(L, luaL_getmetafield(L, 2, "__call"), 2, "a function expected");
        lua_pop(L, 1);
    }
    const int arguments = lua_gettop(L) - 2;
    hkl_state *st = hkl_state_of(L);
    if (!st || !st->labelled) {
        lua_call(L, arguments, LUA_MULTRET);
        return lua_gettop(L) - 1;
    }
    hak_label label = label_of(st, name);
    const hkl_scope_of outer = hkl_scope_begin(st, label);
    int failed = lua_pcall(L, arguments, LUA_MULTRET, 0);
    hkl_scope_end(st, outer);
    if (failed) return lua_error(L);
    return lua_gettop(L) - 1;
}

static int module_report(lua_State *L)
{
    hkl_check_context(L);
    const char *path = luaL_optstring(L, 1, NULL);
    FILE *out = path ? fopen(path, "w") : stderr;
    if (!out) return luaL_error(L, "hakmem.report: cannot write to '%s': %s", path, strerror(errno));
    int failed = hak_lua_report(L, out);
    if (path && fclose(out) != 0) failed = -1;
    if (failed) return luaL_error(L, "hakmem.report: cannot write to '%s'", path ? path : "stderr");
    return 0;
}

/* Of the table at index 1. */
static hkl_adoption check_adoption(lua_State *L)
{
    hkl_adoption how = {.has_limit = false};
    luaL_checktype(L, 1, LUA_TTABLE);
    lua_settop(L, 1);
    for (lua_pushnil(L); lua_next(L, 1); lua_pop(L, 1)) {
        const char *name = lua_type(L, 2) == LUA_TSTRING ? lua_tostring(L, 2) : "";
        if (strcmp(name, "limit") == 0) {
            how.has_limit = true;
            how.limit = hkl_check_size(L, 3, 1, "no limit");
        } else {
            luaL_argcheck(L, strcmp(name, "shared") == 0 && lua_isboolean(L, 3), 1,
                          "{ limit = size, shared = true } or one of these expected");
            how.shared = lua_toboolean(L, 3);
        }
    }
    return how;
}

/* The state is hakmem's already. */
static void change(lua_State *L, const hkl_adoption *how)
{
    hak_ctx *ctx = hak_lua_context(L);
    if (how->shared && hak_ctx_thread(ctx) == ctx)
        luaL_error(L, "hakmem.adopt: the heap of this state is one thread's alone already");
    if (how->has_limit && hak_lua_limit(L, 0, how->limit) != 0)
        luaL_error(L, "hakmem.adopt: no memory for the limit");
}

static void adopt(lua_State *L, const hkl_adoption *how)
{
    const char *trouble = hkl_adopt(L, how);
    if (trouble) luaL_error(L, "hakmem: %s", trouble);
}

/* adopt{...} -> what require "hakmem" gives. */
static int module_adopt(lua_State *L)
{
    const hkl_adoption how = check_adoption(L);
    if (hak_lua_context(L)) change(L, &how);
    else adopt(L, &how);
    /* not by require, which does not try again in 5.1 when it has failed */
    lua_getfield(L, LUA_REGISTRYINDEX, "_LOADED");
    lua_getfield(L, -1, "hakmem");
    if (lua_istable(L, -1)) return 1;
    luaopen_hakmem(L);
    lua_pushvalue(L, -1);
    lua_setfield(L, -4, "hakmem");
    return 1;
}

/* lua_close unloads modules while it still frees blocks through this one. On macOS there is no word for the linker that
 * keeps a module, so that the module asks the loader to keep it. */
static void stay_loaded(void)
{
#ifdef __APPLE__
    Dl_info own;
    if (dladdr((const void *)(uintptr_t)stay_loaded, &own) != 0)
        dlopen(own.dli_fname, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
#endif
}

int luaopen_hakmem_adopt(lua_State *L)
{
    stay_loaded();
    lua_pushcfunction(L, module_adopt);
    return 1;
}

int luaopen_hakmem(lua_State *L)
{
    static const luaL_Reg functions[] = {
        {"stats", module_stats}, {"labels", module_labels}, {"limit", module_limit}, {"trim", module_trim},
        {"label", module_label}, {"report", module_report}, {"tick", module_tick},
    };
    const int count = (int)(sizeof functions / sizeof functions[0]);
    const hkl_adoption plain = {.has_limit = false};
    stay_loaded();
    if (!hak_lua_context(L)) adopt(L, &plain);
    lua_createtable(L, 0, count + 2);
    for (int i = 0; i < count; i++) {
        lua_pushcfunction(L, functions[i].func);
        lua_setfield(L, -2, functions[i].name);
    }
    hkl_profile_push_module(L);
    lua_setfield(L, -2, "profile");
    lua_pushstring(L, hak_version());
    lua_setfield(L, -2, "_VERSION");
    return 1;
}

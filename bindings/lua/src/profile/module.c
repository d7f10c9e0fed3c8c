#include "profile/module.h"

#include "module_check.h"
#include "profile/copy.h"
#include "profile/frames.h"

#include <lauxlib.h>

#include <errno.h>
#include <string.h>

static void set_count(lua_State *L, const char *name, uint64_t n)
{
    hkl_push_count(L, n);
    lua_setfield(L, -2, name);
}

static void set_number(lua_State *L, const char *name, double n)
{
    lua_pushnumber(L, n);
    lua_setfield(L, -2, name);
}

static void set_text(lua_State *L, const char *name, const char *text)
{
    if (text[0] == '\0') return;
    lua_pushstring(L, text);
    lua_setfield(L, -2, name);
}

/* ---- Start and stop --------------------------------------------------------------------------------- */

static bool is_one_of(const char *name, const char *const *names)
{
    while (*names && strcmp(*names, name) != 0)
        names++;
    return *names;
}

static void check_names(lua_State *L, int index)
{
    static const char *const names[] = {"mode", "mean", "depth", "table", "seed", NULL};
    for (lua_pushnil(L); lua_next(L, index); lua_pop(L, 1)) {
        const char *name = lua_type(L, -2) == LUA_TSTRING ? lua_tostring(L, -2) : luaL_typename(L, -2);
        if (!is_one_of(name, names))
            luaL_argerror(
                L, index,
                lua_pushfstring(L, "no option '%s'; there are mode, mean, depth, table, seed", name));
    }
}

/* Of hak_lua_profile_mode, and of hak_profile_mode, which has them in the same order. */
static const char *const mode_names[] = {"sampled", "exact", "lines"};

static hak_lua_profile_mode mode_of(lua_State *L, int index)
{
    int mode = 0;
    lua_getfield(L, index, "mode");
    if (!lua_isnil(L, -1)) {
        const char *name = lua_tostring(L, -1);
        while (mode < 3 && !(name && strcmp(name, mode_names[mode]) == 0))
            mode++;
        if (mode == 3) luaL_argerror(L, index, "mode is 'sampled', 'exact' or 'lines'");
    }
    lua_pop(L, 1);
    return (hak_lua_profile_mode)mode;
}

static size_t size_field(lua_State *L, int index, const char *name, const char *zero)
{
    lua_getfield(L, index, name);
    const size_t n = lua_isnil(L, -1) ? 0 : hkl_check_size(L, lua_gettop(L), index, zero);
    lua_pop(L, 1);
    return n;
}

static void read_options(lua_State *L, int index, hak_lua_profile_options *o)
{
    if (lua_isnoneornil(L, index)) return;
    luaL_checktype(L, index, LUA_TTABLE);
    check_names(L, index);
    o->mode = mode_of(L, index);
    o->mean = size_field(L, index, "mean", "512 KiB");
    o->table_bytes = size_field(L, index, "table", "512 KiB");
    o->seed = size_field(L, index, "seed", "always the same");
    const size_t depth = size_field(L, index, "depth", "the default");
    if (depth > 64) luaL_argerror(L, index, "depth is at most 64");
    o->depth = (unsigned)depth;
    if (o->mode == HAK_LUA_PROFILE_LINES && (depth > 1 || o->mean != 0 || o->seed != 0))
        luaL_argerror(L, index, "with mode 'lines' there is no other option than table");
}

static int start_at(lua_State *L, int index)
{
    hkl_check_context(L);
    hak_lua_profile_options o = HAK_LUA_PROFILE_OPTIONS_INIT;
    read_options(L, index, &o);
    hak_profile_info info = {.size = sizeof info};
    if (hak_profile_stats(hak_lua_context(L), &info) == 0 && info.running)
        return luaL_error(L, "hakmem.profile: a profile is running already");
    if (hak_lua_profile_start(L, &o) != 0)
        return luaL_error(L, "hakmem.profile: no memory, an option is out of range, or another state has "
                             "this one's lua_Alloc");
    return 0;
}

static int profile_start(lua_State *L)
{
    return start_at(L, 1);
}

static int profile_call(lua_State *L)
{
    return start_at(L, 2);
}

static int profile_stop(lua_State *L)
{
    hkl_check_context(L);
    if (hak_lua_profile_stop(L) != 0) return luaL_error(L, "hakmem.profile: no profile was started");
    return 0;
}

static hak_profile_info check_profile(lua_State *L)
{
    hak_profile_info info = {.size = sizeof info};
    if (hak_profile_stats(hkl_check_context(L), &info) != 0 || (!info.running && info.started_ns == 0))
        luaL_error(L, "hakmem.profile: no profile was started");
    return info;
}

/* ---- Windows ---------------------------------------------------------------------------------------- */

/* mark([name]) -> number of the window that begins. */
static int profile_mark(lua_State *L)
{
    const char *name = luaL_optstring(L, 1, "");
    check_profile(L);
    const int window = hak_profile_mark(hak_lua_context(L), name);
    if (window < 0) return luaL_error(L, "hakmem.profile: no room for one more mark");
    hkl_push_count(L, (uint64_t)window);
    return 1;
}

/* ---- The report as a table -------------------------------------------------------------------------- */

/* The table of a frame; those of one number are one table, kept in the table at `known`. */
static void push_frame(lua_State *L, int known, uintptr_t number)
{
    static const char *const kinds[] = {"unknown", "lua", "C", "trace", "coroutine", "cut"};
    const void *key = (const void *)(number & ~HKL_FRAME_BIT);
    lua_pushlightuserdata(L, (void *)(uintptr_t)key);
    lua_rawget(L, known);
    if (!lua_isnil(L, -1)) return;
    lua_pop(L, 1);
    lua_createtable(L, 0, 5);
    hak_lua_frame f;
    if (hak_lua_profile_frame(L, number, &f) == 0) {
        set_text(L, "kind", kinds[f.kind]);
        set_text(L, "source", f.source);
        set_text(L, "name", f.function);
        if (f.line > 0) set_count(L, "line", (uint64_t)f.line);
        if (f.source[0] != '\0') set_count(L, "defined", (uint64_t)(f.defined > 0 ? f.defined : 0));
    } else {
        set_text(L, "kind", "native");
        char address[32];
        snprintf(address, sizeof address, "%p", (const void *)number);
        set_text(L, "name", address);
    }
    lua_pushlightuserdata(L, (void *)(uintptr_t)key);
    lua_pushvalue(L, -2);
    lua_rawset(L, known);
}

/* Pushes "file:line" of the innermost function in Lua; false = there is none, and nothing is pushed. */
static bool push_line(lua_State *L, const hak_profile_stack *s)
{
    hak_lua_frame f;
    for (unsigned i = 0; i < s->depth; i++) {
        if (hak_lua_profile_frame(L, s->frames[i], &f) != 0) continue;
        if (f.kind != HAK_LUA_FRAME_LUA && f.kind != HAK_LUA_FRAME_TRACE) continue;
        lua_pushfstring(L, "%s:%d", f.source + (*f.source == '@' || *f.source == '='), f.line);
        return true;
    }
    return false;
}

static const struct amount {
    const char *name;
    size_t at;
} amounts[] = {
    {"alloc_blocks", offsetof(hak_profile_stack, alloc_blocks)},
    {"alloc_bytes", offsetof(hak_profile_stack, alloc_bytes)},
    {"live_blocks", offsetof(hak_profile_stack, live_blocks)},
    {"live_bytes", offsetof(hak_profile_stack, live_bytes)},
    {"peak_blocks", offsetof(hak_profile_stack, peak_blocks)},
    {"peak_bytes", offsetof(hak_profile_stack, peak_bytes)},
    /* of a stack alone, not of a line */
    {"alloc_bytes_error", offsetof(hak_profile_stack, alloc_bytes_error)},
    {"live_bytes_error", offsetof(hak_profile_stack, live_bytes_error)},
    {"peak_bytes_error", offsetof(hak_profile_stack, peak_bytes_error)},
    {"mean_bytes", offsetof(hak_profile_stack, mean_bytes)},
    {"grown_blocks", offsetof(hak_profile_stack, grown_blocks)},
    {"grown_bytes", offsetof(hak_profile_stack, grown_bytes)},
};
enum { AMOUNTS = sizeof amounts / sizeof amounts[0], SUMMED = 6 };

static double amount_of(const hak_profile_stack *s, const struct amount *a)
{
    double value;
    memcpy(&value, (const char *)s + a->at, sizeof value);
    return value;
}

/* Adds the stack to its line in the table at `lines`. */
static void add_to_line(lua_State *L, int lines, const hak_profile_stack *s)
{
    if (!push_line(L, s)) return;
    lua_pushvalue(L, -1);
    lua_rawget(L, lines);
    if (lua_isnil(L, -1)) {
        lua_pop(L, 1);
        lua_createtable(L, 0, SUMMED);
        lua_pushvalue(L, -2);
        lua_pushvalue(L, -2);
        lua_rawset(L, lines);
    }
    for (int i = 0; i < SUMMED; i++) {
        lua_getfield(L, -1, amounts[i].name);
        const double before = lua_tonumber(L, -1);
        lua_pop(L, 1);
        set_number(L, amounts[i].name, before + amount_of(s, &amounts[i]));
    }
    lua_pop(L, 2);
}

static void push_stack(lua_State *L, hak_ctx *ctx, int known, const hak_profile_stack *s)
{
    static const char *const kinds[] = {"", "small_frequent", "medium", "large_infrequent"};
    const char *label = s->label != 0 ? hak_label_name(ctx, s->label) : NULL;
    lua_createtable(L, 0, AMOUNTS + 8);
    set_count(L, "id", s->id);
    set_text(L, "label", label ? label : "");
    set_text(L, "class", kinds[s->kind]);
    set_count(L, "samples", s->samples);
    set_count(L, "largest_bytes", s->largest_bytes);
    set_number(L, "age", s->age_ns / 1e9);
    for (int i = 0; i < AMOUNTS; i++)
        set_number(L, amounts[i].name, amount_of(s, &amounts[i]));
    lua_createtable(L, (int)s->depth, 0);
    for (unsigned i = 0; i < s->depth; i++) {
        push_frame(L, known, s->frames[i]);
        lua_rawseti(L, -2, (int)i + 1);
    }
    lua_setfield(L, -2, "frames");
}

static int drop_copy(lua_State *L)
{
    hkl_copy_drop(lua_touserdata(L, 1));
    return 0;
}

/* Pushes a copy that goes with the collector. Finalizers that run meanwhile may begin and end profiles: what
 * is copied is asked for afterwards. */
static hkl_copy *push_copy(lua_State *L)
{
    hkl_copy *copy = lua_newuserdata(L, sizeof *copy);
    *copy = (hkl_copy){.stacks = NULL};
    lua_createtable(L, 0, 1);
    lua_pushcfunction(L, drop_copy);
    lua_setfield(L, -2, "__gc");
    lua_setmetatable(L, -2);
    return copy;
}

static void push_stacks(lua_State *L, hak_ctx *ctx, int known, const hkl_copy *copy)
{
    lua_createtable(L, (int)copy->count, 0);
    for (size_t i = 0; i < copy->count; i++) {
        push_stack(L, ctx, known, &copy->stacks[i]);
        lua_rawseti(L, -2, (int)i + 1);
    }
}

/* The windows: a table with an entry for each. */
static void push_marks(lua_State *L, const hkl_copy *copy, uint64_t started_ns)
{
    lua_createtable(L, (int)copy->mark_count, 0);
    for (size_t i = 0; i < copy->mark_count; i++) {
        const hak_profile_window *m = &copy->marks[i];
        lua_createtable(L, 0, 5);
        lua_pushstring(L, m->name);
        lua_setfield(L, -2, "name");
        set_number(L, "at", (double)(int64_t)(m->at_ns - started_ns) / 1e9);
        set_count(L, "live_bytes", m->live_bytes);
        set_count(L, "committed_bytes", m->committed_bytes);
        if (m->resident_bytes > 0) set_count(L, "resident_bytes", m->resident_bytes);
        lua_rawseti(L, -2, (int)i + 1);
    }
}

/* What grew over the windows; the stack of each is the one in the table at `stacks`. */
static void push_verdicts(lua_State *L, int stacks, const hkl_copy *copy)
{
    static const char *const trends[] = {"growth", "leak", "filling"};
    lua_createtable(L, (int)copy->grown_count, 0);
    for (size_t i = 0; i < copy->grown_count; i++) {
        const hak_profile_growth *g = &copy->grown[i];
        lua_createtable(L, 0, 12);
        set_text(L, "kind", trends[g->trend]);
        set_text(L, "evidence", g->evidence);
        set_number(L, "bytes_a_window", g->bytes_a_window);
        set_number(L, "low", g->low);
        set_number(L, "high", g->high);
        set_number(L, "bytes_an_hour", g->bytes_an_hour);
        set_number(L, "low_an_hour", g->low_an_hour);
        set_number(L, "high_an_hour", g->high_an_hour);
        set_number(L, "freed_share", g->freed_share);
        set_number(L, "kept_share", g->kept_share);
        set_count(L, "windows", g->windows);
        for (size_t n = 0; n < copy->count; n++) {
            if (copy->stacks[n].id != g->stack) continue;
            lua_rawgeti(L, stacks, (int)n + 1);
            lua_setfield(L, -2, "stack");
            break;
        }
        lua_rawseti(L, -2, (int)i + 1);
    }
}

/* report() -> table: the stacks are those from before it was made. */
static int report_table(lua_State *L)
{
    hak_ctx *ctx = hkl_check_context(L);
    lua_settop(L, 0);
    hkl_copy *copy = push_copy(L);
    const hak_profile_info info = check_profile(L);
    if (!hkl_copy_take(copy, ctx)) return luaL_error(L, "hakmem.profile: not enough memory");
    lua_newtable(L); /* 2: frames by number */
    lua_newtable(L); /* 3: lines */
    lua_createtable(L, 0, 11);
    set_text(L, "mode", mode_names[info.mode]);
    lua_pushboolean(L, info.running);
    lua_setfield(L, -2, "running");
    if (info.mode == HAK_PROFILE_SAMPLED) set_count(L, "mean", info.mean);
    set_count(L, "samples", info.samples);
    set_count(L, "dropped_stacks", info.dropped_stacks);
    set_count(L, "dropped_samples", info.dropped_samples);
    set_count(L, "table_bytes", info.table_bytes);
    push_stacks(L, ctx, 2, copy); /* 5 */
    push_verdicts(L, 5, copy);
    lua_setfield(L, 4, "verdicts");
    lua_setfield(L, 4, "stacks");
    push_marks(L, copy, info.started_ns);
    lua_setfield(L, 4, "marks");
    for (size_t i = 0; i < copy->count; i++)
        add_to_line(L, 3, &copy->stacks[i]);
    lua_pushvalue(L, 3);
    lua_setfield(L, 4, "lines");
    hkl_copy_drop(copy);
    return 1;
}

static int report_file(lua_State *L, const char *path)
{
    check_profile(L);
    FILE *out = fopen(path, "w");
    if (!out) return luaL_error(L, "hakmem.profile: cannot write to '%s': %s", path, strerror(errno));
    int failed = hak_lua_report_json(L, out);
    if (fclose(out) != 0) failed = -1;
    if (failed) return luaL_error(L, "hakmem.profile: cannot write to '%s'", path);
    return 0;
}

static unsigned check_window(lua_State *L, int arg, unsigned marks)
{
    const lua_Number n = luaL_optnumber(L, arg, marks + 1.0);
    if (!(n >= 0 && n <= marks + 1.0 && n == (lua_Number)(unsigned)n))
        luaL_argerror(L, arg, lua_pushfstring(L, "no such window, the last one is %d", (int)marks));
    return (unsigned)n;
}

/* diff(from[, to]) -> stacks of what changed from the beginning of a window to that of another one, or until
 * now. */
static int profile_diff(lua_State *L)
{
    hak_ctx *ctx = hkl_check_context(L);
    luaL_checknumber(L, 1);
    lua_settop(L, 2);
    hkl_copy *copy = push_copy(L);
    const hak_profile_info info = check_profile(L);
    const unsigned from = check_window(L, 1, info.marks), to = check_window(L, 2, info.marks);
    luaL_argcheck(L, from < to, 2, "a later window expected");
    bool there;
    if (!hkl_copy_take_diff(copy, ctx, from, to, &there) || !there)
        return luaL_error(L, "hakmem.profile: not enough memory");
    lua_newtable(L); /* 4: frames by number */
    push_stacks(L, ctx, 4, copy);
    hkl_copy_drop(copy);
    return 1;
}

static int profile_report(lua_State *L)
{
    const char *path = luaL_optstring(L, 1, NULL);
    return path ? report_file(L, path) : report_table(L);
}

void hkl_profile_push_module(lua_State *L)
{
    static const luaL_Reg functions[] = {
        {"start", profile_start}, {"stop", profile_stop},     {"mark", profile_mark},
        {"diff", profile_diff},   {"report", profile_report},
    };
    const int count = (int)(sizeof functions / sizeof functions[0]);
    lua_createtable(L, 0, count);
    for (int i = 0; i < count; i++) {
        lua_pushcfunction(L, functions[i].func);
        lua_setfield(L, -2, functions[i].name);
    }
    lua_createtable(L, 0, 1);
    lua_pushcfunction(L, profile_call);
    lua_setfield(L, -2, "__call");
    lua_setmetatable(L, -2);
}

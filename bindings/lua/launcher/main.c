/* hakluajit and haklua5.1 to 5.5: the interpreter, in a context of hakmem. */
#include "launcher.h"

#include "common/cache.h"

#include <hakmem/lua.h>

#include <lauxlib.h>
#include <lualib.h>

#include <errno.h>
#ifndef _WIN32
#include <pthread.h>
#endif
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static lua_State *reported; /* the state that is to be reported when the process exits; NULL = none */
static hkl_output report_output, profile_output;
static bool wants_report, wants_profile;
static lua_Alloc first_alloc;
static void *first_ud;
static const hkl_options *the_options;

/* false = it could not be written, and that was said. */
static bool write_one(lua_State *L, hkl_output *output, int (*write)(lua_State *, FILE *), const char *what)
{
    char message[256];
    if (!hkl_output_due(output)) return true;
    errno = 0;
    FILE *out = hkl_output_open(output);
    int error = out && write(L, out) == 0 ? 0 : errno != 0 ? errno : EIO;
    error = hkl_output_close(output, out, error);
    if (!error) return true;
    snprintf(message, sizeof message, "cannot write the %s: %s", what, strerror(error));
    hkl_message(message);
    return false;
}

static bool write_all(lua_State *L)
{
    bool ok = true;
    if (wants_profile) ok = write_one(L, &profile_output, hak_lua_report_json, "profile");
    if (wants_report) ok &= write_one(L, &report_output, hak_lua_report, "report");
    return ok;
}

/* false = there was one to write, and it could not be written. A module may have put a lua_Alloc of its own
 * around that of the binding, which hides the state: while reports are written, which takes nothing from the
 * state, the first one is there again. */
static bool report(void)
{
    lua_State *L = reported;
    void *ud;
    reported = NULL;
    if (!L) return true;
    hak_lua_live_stop(L);
    fflush(stdout);
    const lua_Alloc now = lua_getallocf(L, &ud);
    const bool hidden = !hak_lua_context(L);
    if (hidden) lua_setallocf(L, first_alloc, first_ud);
    bool ok = write_all(L);
    if (hidden) lua_setallocf(L, now, ud);
    if (getpid() == report_output.owner) ok &= hkl_learn_finish(the_options);
    return ok;
}

/* C's exit: its status is fixed when this runs. */
static void report_at_exit(void)
{
    if (report()) return;
    fflush(NULL);
    _exit(EXIT_FAILURE);
}

static bool is_success(lua_State *L)
{
    if (lua_isboolean(L, 1) && !HKL_PUC_51) return lua_toboolean(L, 1);
    return luaL_optinteger(L, 1, EXIT_SUCCESS) == EXIT_SUCCESS;
}

/* In place of os.exit, which may close the state before the process exits. */
static int exit_with_report(lua_State *L)
{
    const bool success = is_success(L);
    if (!report() && success) {
        lua_settop(L, 2);
        lua_pushinteger(L, EXIT_FAILURE);
        lua_replace(L, 1);
    }
    hak_lua_limit(L, 0, 0);
    lua_pushvalue(L, lua_upvalueindex(1));
    lua_insert(L, 1);
    lua_call(L, lua_gettop(L) - 1, 0);
    return 0;
}

static void open_libraries(lua_State *L, const hkl_options *o)
{
    if (o->ignore_env) {
        lua_pushboolean(L, 1);
        lua_setfield(L, LUA_REGISTRYINDEX, "LUA_NOENV");
    }
    lua_gc(L, LUA_GCSTOP, 0);
    luaL_openlibs(L);
    lua_gc(L, LUA_GCRESTART, -1);
    hkl_version_learn(L);
#ifdef HKL_LUAJIT
    hkl_jit_print_finalizer_errors(L);
#endif
    lua_getglobal(L, "package");
    lua_getfield(L, -1, "preload");
    lua_pushcfunction(L, luaopen_hakmem);
    lua_setfield(L, -2, "hakmem");
    lua_pushcfunction(L, luaopen_hakmem_adopt);
    lua_setfield(L, -2, "hakmem.adopt");
    lua_getglobal(L, "os");
    lua_getfield(L, -1, "exit");
    lua_pushcclosure(L, exit_with_report, 1);
    lua_setfield(L, -2, "exit");
    lua_settop(L, 1);
#if LUA_VERSION_NUM >= 504
    lua_gc(L, LUA_GCGEN, 0, 0); /* 5.5 looks at neither number */
#endif
}

static void set_limit(lua_State *L, const hkl_options *o)
{
    hak_stats s = {.size = sizeof s};
    hak_ctx_stats(hak_lua_context(L), &s);
    if (o->limit < s.committed_bytes) {
        char text[256];
        snprintf(text, sizeof text, "%.80s: %zu bytes are committed before the program starts", o->limit_text,
                 s.committed_bytes);
        luaL_error(L, "%s", text);
    }
    if (hak_lua_limit(L, 0, o->limit) != 0) luaL_error(L, "no memory for the limit");
}

static void start_profile(lua_State *L, const hkl_options *o)
{
    hak_lua_profile_options options = HAK_LUA_PROFILE_OPTIONS_INIT;
    options.mode = o->profile_mode;
    options.mean = o->profile_file ? o->profile_mean : o->probes_mean;
    options.window_ns = o->profile_window_ns;
    if (hak_lua_profile_start(L, &options) != 0)
        luaL_error(L, o->profile_mode == HAK_LUA_PROFILE_LINES
                          ? "no memory for the profile, or no lines on this platform"
                          : "no memory for the profile");
}

static void start_live(lua_State *L, const hkl_options *o)
{
    char why[256];
    if (hak_lua_live_start(L, o->live, why, sizeof why) != 0) luaL_error(L, "--hak-live: %s", why);
}

static int protected_main(lua_State *L)
{
    const hkl_options *o = lua_touserdata(L, 1);
    open_libraries(L, o);
    if (wants_profile || o->probes) start_profile(L, o);
    if (o->live) start_live(L, o);
    if (o->limit != 0) set_limit(L, o);
    lua_settop(L, 2); /* as the interpreters have it: a program sees in how deep it can call */
    lua_pushboolean(L, hkl_run_program(L, o));
    return 1;
}

static int fail(const char *what, const char *why)
{
    fprintf(stderr, "%s: %s%s%s\n", hkl_program, what, why ? ": " : "", why ? why : "");
    return EXIT_FAILURE;
}

/* A space that reserves as much as was asked for; NULL = it cannot. */
static hak_space *space_of(const hkl_options *o)
{
    hak_space_options options = HAK_SPACE_OPTIONS_INIT;
    options.mode = o->mode;
    options.policy = o->policy;
    options.reserve = o->reserve;
    return hak_space_new(&options);
}

/* ---- --hak-shared: a forked child must not find locks that other threads of its parent held ------- */

#ifdef _WIN32

static bool forks_safely(hak_ctx *ctx)
{
    return ctx;
}

#else

static hak_ctx *shared;

static void fork_prepare(void)
{
    hak_ctx_fork_prepare(shared);
}

static void fork_parent(void)
{
    hak_ctx_fork_parent(shared);
}

static void fork_child(void)
{
    hak_ctx_fork_child(shared);
}

static bool forks_safely(hak_ctx *ctx)
{
    shared = ctx;
    return pthread_atfork(fork_prepare, fork_parent, fork_child) == 0;
}

#endif

int main(int argc, char **argv)
{
    hkl_options o;
    char message[512];
    if (argc > 0 && argv[0][0] != '\0') hkl_program = argv[0];
    if (!hkl_options_parse(&o, argc, argv, message, sizeof message)) return fail(message, NULL);
    if (o.broken && !HKL_PUC_51) { /* 5.1 runs LUA_INIT before */
        hkl_print_usage(&o);
        return EXIT_FAILURE;
    }
    if (!hkl_output_plan(&report_output, o.report_file)) return fail(o.report_file, strerror(errno));
    wants_report = o.report;
    wants_profile = o.profile_file;
    if (wants_profile && !hkl_output_plan(&profile_output, o.profile_file))
        return fail(o.profile_file, strerror(errno));

    hak_options options = HAK_OPTIONS_INIT;
    options.name = o.script < o.argc && !o.from_stdin ? o.argv[o.script] : PROGRAM;
    if (!hkl_learn_plan(&o, message, sizeof message)) return fail(message, NULL);
    options.mode = o.mode;
    options.policy = o.policy;
    options.shared = o.shared;
    char folder[2048];
    if (hkc_cache_folder(folder, sizeof folder)) hak_lua_lessons(folder);
    hak_space *space = o.reserve ? space_of(&o) : NULL;
    if (o.reserve && !space) return fail("--hak-reserve: so many addresses are not to be had", NULL);
    lua_State *L =
        o.labels ? hak_lua_newstate_labelled(space, &options) : hak_lua_newstate_in(space, &options);
    if (!L) return fail("cannot create state: not enough memory", NULL);
    the_options = &o;
    first_alloc = lua_getallocf(L, &first_ud);
    if (o.shared && !forks_safely(hak_lua_context(L))) return fail("cannot prepare for forks", NULL);
    bool learns = hkl_learn_wanted(&o);
    if (learns && !hkl_learn_start(&o, L, hak_lua_context(L))) return fail("no memory to learn", NULL);
    if (wants_report || wants_profile || o.live || learns) {
        reported = L;
        if (atexit(report_at_exit) != 0) return fail("cannot register the report", NULL);
    }
    lua_pushcfunction(L, protected_main);
    lua_pushlightuserdata(L, &o);
    int status = lua_pcall(L, 1, 1, 0);
#if LUA_VERSION_NUM == 502
    if (status != LUA_OK && lua_isnil(L, -1)) lua_pushboolean(L, 1); /* here, unlike elsewhere, it is said */
#endif
    hkl_print_last_error(L, status);
    bool ok = status == LUA_OK && lua_toboolean(L, -1);
    if (!report()) ok = false;
    if (hak_lua_close(L) != 0) lua_close(L); /* a C module has wrapped the allocator */
    hak_space_delete(space);
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

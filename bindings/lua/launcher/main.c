/* hakluajit and haklua5.4: the interpreter, in a context of hakmem. */
#include "launcher.h"

#include <hakmem/lua.h>

#include <lauxlib.h>
#include <lualib.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static lua_State *reported; /* the state that is to be reported when the process exits; NULL = none */
static FILE *report_out;

static void report(void)
{
    lua_State *L = reported;
    reported = NULL;
    if (L == NULL) return;
    fflush(stdout);
    if (hak_lua_report(L, report_out) != 0) fputs(PROGRAM ": cannot write the report\n", stderr);
}

/* In place of os.exit, which may close the state before the process exits. */
static int exit_with_report(lua_State *L)
{
    if (!lua_isboolean(L, 1)) luaL_optinteger(L, 1, 0);
    report();
    hak_lua_limit(L, 0, 0);
    lua_pushvalue(L, lua_upvalueindex(1));
    lua_insert(L, 1);
    lua_call(L, lua_gettop(L) - 1, 0);
    return 0;
}

static void open_libraries(lua_State *L, const hk_options *o)
{
    if (o->ignore_env) {
        lua_pushboolean(L, 1);
        lua_setfield(L, LUA_REGISTRYINDEX, "LUA_NOENV");
    }
    lua_gc(L, LUA_GCSTOP, 0);
    luaL_openlibs(L);
    lua_gc(L, LUA_GCRESTART, -1);
    lua_getglobal(L, "package");
    lua_getfield(L, -1, "preload");
    lua_pushcfunction(L, luaopen_hakmem);
    lua_setfield(L, -2, "hakmem");
    lua_getglobal(L, "os");
    lua_getfield(L, -1, "exit");
    lua_pushcclosure(L, exit_with_report, 1);
    lua_setfield(L, -2, "exit");
    lua_settop(L, 1);
#if LUA_VERSION_NUM >= 504
    lua_gc(L, LUA_GCGEN, 0, 0);
#endif
}

static int protected_main(lua_State *L)
{
    const hk_options *o = lua_touserdata(L, 1);
    open_libraries(L, o);
    if (o->limit != 0 && hak_lua_limit(L, 0, o->limit) != 0) return luaL_error(L, "no memory for the limit");
    lua_pushboolean(L, hk_run_program(L, o));
    return 1;
}

static int fail(const char *what, const char *why)
{
    fprintf(stderr, PROGRAM ": %s%s%s\n", what, why != NULL ? ": " : "", why != NULL ? why : "");
    return EXIT_FAILURE;
}

int main(int argc, char **argv)
{
    hk_options o;
    char message[512];
    if (!hk_options_parse(&o, argc, argv, message, sizeof message)) return fail(message, NULL);
    report_out = stderr;
    if (o.report_file != NULL && (report_out = fopen(o.report_file, "w")) == NULL)
        return fail(o.report_file, strerror(errno));

    hak_options options = HAK_OPTIONS_INIT;
    options.name = o.script < o.argc && !o.from_stdin ? o.argv[o.script] : PROGRAM;
    lua_State *L = o.labels ? hak_lua_newstate_labelled(NULL, &options) : hak_lua_newstate(&options);
    if (L == NULL) return fail("cannot create a state: out of memory", NULL);
    if (o.report) {
        reported = L;
        if (atexit(report) != 0) return fail("cannot register the report", NULL);
    }
    lua_pushcfunction(L, protected_main);
    lua_pushlightuserdata(L, &o);
    int status = hk_print_error(L, lua_pcall(L, 1, 1, 0));
    bool ok = status == 0 && lua_toboolean(L, -1);
    report();
    hak_lua_close(L);
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* Running what the command line asks for, as the interpreter itself does. Where interpreters differ, so does
 * this. */
#include "launcher.h"

#include <lauxlib.h>
#include <lualib.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static lua_State *interrupted; /* the state that Ctrl-C stops */

static void raise_interrupt(lua_State *L, lua_Debug *ar)
{
    (void)ar;
    lua_sethook(L, NULL, 0, 0);
#ifdef HKL_LUAJIT
    luaL_where(L, 0); /* a C hook has no frame of its own there */
    lua_pushliteral(L, "interrupted!");
    lua_concat(L, 2);
    lua_error(L);
#else
    luaL_error(L, "interrupted!");
#endif
}

static void on_interrupt(int signal_number)
{
    int mask = LUA_MASKCALL | LUA_MASKRET | LUA_MASKCOUNT;
#if LUA_VERSION_NUM >= 504
    mask |= LUA_MASKLINE;
#endif
    signal(signal_number, SIG_DFL); /* a second one ends the process */
    lua_sethook(interrupted, raise_interrupt, mask, 1);
}

/* 5.4 lets a signal end a system call, such as a read from the terminal. */
static void on_signal(void (*handler)(int))
{
#ifdef _WIN32
    signal(SIGINT, handler);
#else
    struct sigaction action = {.sa_handler = handler, .sa_flags = LUA_VERSION_NUM >= 504 ? 0 : SA_RESTART};
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
#endif
}

/* LuaJIT has a traceback for text of __tostring as well, numbers too, and leaves its other results alone; 5.1
 * calls what the program has as debug.traceback; the others take what __tostring gives as it is, from 5.3 on
 * strings alone. */
static int traceback(lua_State *L)
{
#ifdef HKL_LUAJIT
    if (!lua_isstring(L, 1)) {
        if (lua_isnoneornil(L, 1) || !luaL_callmeta(L, 1, "__tostring") || !lua_isstring(L, -1)) return 1;
        lua_replace(L, 1);
    }
    luaL_traceback(L, L, lua_tostring(L, 1), 1);
#elif LUA_VERSION_NUM == 501
    if (!lua_isstring(L, 1)) return 1;
    lua_getglobal(L, "debug");
    if (lua_istable(L, -1)) lua_getfield(L, -1, "traceback");
    if (!lua_isfunction(L, -1)) {
        lua_settop(L, 1);
        return 1;
    }
    lua_pushvalue(L, 1);
    lua_pushinteger(L, 2);
    lua_call(L, 2, 1);
#elif LUA_VERSION_NUM == 502
    const char *message = lua_tostring(L, 1);
    if (message) luaL_traceback(L, L, message, 1);
    else if (!lua_isnoneornil(L, 1) && !luaL_callmeta(L, 1, "__tostring"))
        lua_pushliteral(L, "(no error message)");
#else
    const char *message = lua_tostring(L, 1);
    if (!message) {
        if (luaL_callmeta(L, 1, "__tostring") && lua_type(L, -1) == LUA_TSTRING) return 1;
        message = lua_pushfstring(L, "(error object is a %s value)", luaL_typename(L, 1));
    }
    luaL_traceback(L, L, message, 1);
#endif
    return 1;
}

static int call(lua_State *L, int arguments, int results)
{
    int base = lua_gettop(L) - arguments;
    lua_pushcfunction(L, traceback);
    lua_insert(L, base);
    interrupted = L;
    on_signal(on_interrupt);
    int status = lua_pcall(L, arguments, results, base);
    on_signal(SIG_DFL);
    lua_remove(L, base);
#if LUA_VERSION_NUM == 501
    if (status != LUA_OK) lua_gc(L, LUA_GCCOLLECT, 0);
#endif
    return status;
}

int hkl_run(lua_State *L, int arguments, int results)
{
    return hkl_print_error(L, call(L, arguments, results));
}

static bool run_loaded(lua_State *L, int status)
{
    return (status == LUA_OK ? hkl_run(L, 0, 0) : hkl_print_error(L, status)) == LUA_OK;
}

static bool run_string(lua_State *L, const char *text, const char *name)
{
    return run_loaded(L, luaL_loadbuffer(L, text, strlen(text), name));
}

static bool run_file(lua_State *L, const char *name)
{
    return run_loaded(L, luaL_loadfile(L, name));
}

/* The value is a chunk, or @ and the name of a file. */
static bool run_environment(lua_State *L)
{
    const char *name = "=LUA_INIT";
    const char *text = NULL;
#if LUA_VERSION_NUM >= 502
    static const char with_version[] = "=LUA_INIT_" LUA_VERSION_MAJOR "_" LUA_VERSION_MINOR;
    text = getenv(with_version + 1);
    if (text) name = with_version;
#endif
    if (!text) text = getenv(name + 1);
    if (!text) return true;
    return *text == '@' ? run_file(L, text + 1) : run_string(L, text, name);
}

/* From 5.2 on mod is stored in the global mod, by 5.4 g=mod in g; from 5.4.7 on without what follows a
 * hyphen. */
static bool require_library(lua_State *L, const char *text)
{
    const char *name = text;
#if LUA_VERSION_NUM >= 504
    const char *equals = strchr(text, '=');
    if (equals) name = equals + 1;
#endif
    lua_getglobal(L, "require");
    lua_pushstring(L, name);
#if LUA_VERSION_NUM == 501
    return hkl_run(L, 1, 0) == LUA_OK;
#else
    if (hkl_run(L, 1, 1) != LUA_OK) return false;
    size_t length = strlen(text);
#if LUA_VERSION_NUM >= 504
    if (equals) length = (size_t)(equals - text);
    else if (hkl_from_release(504, 7)) length = strcspn(text, "-");
#endif
    lua_pushglobaltable(L);
    lua_pushlstring(L, text, length);
    lua_pushvalue(L, -3);
    lua_settable(L, -3);
    lua_pop(L, 2);
    return true;
#endif
}

static bool run_action(lua_State *L, const hkl_action *action)
{
    switch (action->option) {
    case 'e':
        return run_string(L, action->text, "=(command line)");
    case 'l':
        return require_library(L, action->text);
#ifdef HKL_LUAJIT
    case 'j':
        return hkl_jit_command(L, action->text);
    case 'O':
        return hkl_jit_optimize(L, action->text);
#elif LUA_VERSION_NUM >= 504
    case 'W':
        lua_warning(L, "@on", 0);
        return true;
#endif
    default:
        return false;
    }
}

static void make_arg_table(lua_State *L, const hkl_options *o)
{
    int script = o->script;
#ifdef HKL_LUAJIT
    const int below = 0; /* arg[0] is in the array; a program that makes a hole sees it in #arg */
#else
    const int below = 1;
#endif
    if (LUA_VERSION_NUM >= 503 && script == o->argc) script = 0; /* LuaJIT has the program below arg[0] */
    lua_createtable(L, o->argc - script - below, script + below);
    for (int i = 0; i < o->argc; i++) {
        lua_pushstring(L, o->argv[i]);
        lua_rawseti(L, -2, i - script);
    }
    lua_setglobal(L, "arg");
}

/* The arguments of the script: on 5.1 and 5.2 from the command line, else from the table, as -e, -l and
 * LUA_INIT have left it. */
static int push_arguments(lua_State *L, const hkl_options *o)
{
    static const char too_many[] = "too many arguments to script";
    int n = 0;
#if HKL_PLAIN_ARGUMENTS
    luaL_checkstack(L, o->argc, too_many);
    for (int i = o->script + 1; i < o->argc; i++, n++)
        lua_pushstring(L, o->argv[i]);
#else
    (void)o;
    lua_getglobal(L, "arg");
    int table = lua_gettop(L);
#ifdef HKL_LUAJIT
    if (lua_istable(L, table)) {
        for (;; n++) {
            luaL_checkstack(L, 2, too_many);
            lua_rawgeti(L, table, n + 1);
            if (lua_isnil(L, -1)) break;
        }
        lua_pop(L, 1);
    }
#else
    if (!lua_istable(L, table)) luaL_error(L, "'arg' is not a table");
    n = (int)luaL_len(L, table);
    luaL_checkstack(L, n, too_many);
    for (int i = 1; i <= n; i++)
        lua_rawgeti(L, table, i);
#endif
    lua_remove(L, table);
#endif
    return n;
}

static bool run_script(lua_State *L, const hkl_options *o)
{
    int status = luaL_loadfile(L, o->from_stdin ? NULL : o->argv[o->script]);
    if (status == LUA_OK) status = call(L, push_arguments(L, o), LUA_MULTRET);
    return hkl_print_error(L, status) == LUA_OK;
}

static void repl(lua_State *L)
{
#ifdef HKL_LUAJIT
    hkl_jit_print_status(L);
#endif
    hkl_repl(L);
}

/* What is done before options are: the order is that of each interpreter. */
static bool prepare(lua_State *L, const hkl_options *o)
{
    if (LUA_VERSION_NUM >= 502 && o->version) hkl_print_version();
    if (!HKL_PLAIN_ARGUMENTS) make_arg_table(L, o);
    if (!o->ignore_env && !run_environment(L)) return false;
    if (o->broken) {
        hkl_print_usage(o);
        return false;
    }
    if (LUA_VERSION_NUM == 501 && o->version) hkl_print_version();
    return true;
}

bool hkl_run_program(lua_State *L, const hkl_options *o)
{
    if (!prepare(L, o)) return false;
#if LUA_VERSION_NUM >= 505
    lua_warning(L, "@off", 0);
#endif
    for (int i = 0; i < o->action_count; i++)
        if (!run_action(L, &o->actions[i])) return false;
#ifdef HKL_LUAJIT
    if (o->bytecode != 0) return hkl_jit_bytecode(L, o);
#endif
    bool has_script = o->script < o->argc;
    if (HKL_PLAIN_ARGUMENTS && has_script) make_arg_table(L, o);
    if (has_script && !run_script(L, o)) return false;
    if (o->interactive) {
        repl(L);
    } else if (!has_script && !o->has_chunk && !o->version) {
        if (isatty(STDIN_FILENO)) {
            hkl_print_version();
            repl(L);
        } else {
            run_file(L, NULL); /* the interpreters exit with 0 whatever becomes of it */
        }
    }
    return true;
}

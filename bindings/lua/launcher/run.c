/* Running what the command line asks for, as the interpreter itself does. */
#include "launcher.h"

#include <lauxlib.h>
#include <lualib.h>
#ifdef HK_LUA_LUAJIT
#include <luajit.h>
#endif

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifndef LUA_OK
#define LUA_OK 0
#endif

static lua_State *interrupted;                  /* the state that Ctrl-C stops */
static const char *error_prefix = PROGRAM ": "; /* none in interactive mode */

static void raise_interrupt(lua_State *L, lua_Debug *ar)
{
    (void)ar;
    lua_sethook(L, NULL, 0, 0);
    luaL_error(L, "interrupted!");
}

static void on_interrupt(int signal_number)
{
    signal(signal_number, SIG_DFL); /* a second one ends the process */
    lua_sethook(interrupted, raise_interrupt, LUA_MASKCALL | LUA_MASKRET | LUA_MASKCOUNT, 1);
}

/* As each interpreter does it: LuaJIT leaves objects without text alone, 5.4 those with text. */
static int traceback(lua_State *L)
{
    const char *message = lua_tostring(L, 1);
    bool has_text = message != NULL || (luaL_callmeta(L, 1, "__tostring") && lua_isstring(L, -1));
#ifdef HK_LUA_LUAJIT
    if (!has_text) {
        lua_settop(L, 1);
        return 1;
    }
    message = lua_tostring(L, -1);
#else
    if (message == NULL && has_text) return 1;
    if (message == NULL) message = lua_pushfstring(L, "(error object is a %s value)", luaL_typename(L, 1));
#endif
    luaL_traceback(L, L, message, 1);
    return 1;
}

int hk_run(lua_State *L, int arguments, int results)
{
    int base = lua_gettop(L) - arguments;
    lua_pushcfunction(L, traceback);
    lua_insert(L, base);
    interrupted = L;
    signal(SIGINT, on_interrupt);
    int status = lua_pcall(L, arguments, results, base);
    signal(SIGINT, SIG_DFL);
    lua_remove(L, base);
    return hk_print_error(L, status);
}

int hk_print_error(lua_State *L, int status)
{
    if (status != LUA_OK) {
        const char *message = lua_tostring(L, -1);
        fflush(stdout);
        if (message != NULL || !lua_isnil(L, -1)) /* error(nil) is silent in LuaJIT */
            fprintf(stderr, "%s%s\n", error_prefix,
                    message != NULL ? message : "(error object is not a string)");
        lua_pop(L, 1);
    }
    return status;
}

static bool run_loaded(lua_State *L, int status, int arguments)
{
    return (status == LUA_OK ? hk_run(L, arguments, 0) : hk_print_error(L, status)) == LUA_OK;
}

static bool run_string(lua_State *L, const char *text, const char *name)
{
    return run_loaded(L, luaL_loadbuffer(L, text, strlen(text), name), 0);
}

static bool run_file(lua_State *L, const char *name)
{
    return run_loaded(L, luaL_loadfile(L, name), 0);
}

/* The value is a chunk, or @ and the name of a file. */
static bool run_environment(lua_State *L)
{
    const char *name = "LUA_INIT";
    const char *text = NULL;
#if LUA_VERSION_NUM >= 504
    name = "LUA_INIT_5_4";
    text = getenv(name);
    if (text == NULL) name = "LUA_INIT";
#endif
    if (text == NULL) text = getenv(name);
    if (text == NULL) return true;
    if (*text == '@') return run_file(L, text + 1);
    char chunk_name[32];
    snprintf(chunk_name, sizeof chunk_name, "=%s", name);
    return run_string(L, text, chunk_name);
}

#ifdef HK_LUA_LUAJIT
static bool require_library(lua_State *L, const char *name)
{
    lua_getglobal(L, "require");
    lua_pushstring(L, name);
    return hk_run(L, 1, 0) == LUA_OK;
}

/* `chunk` turns text into a function and its arguments; that is called from C, so that its errors name no
 * place. */
static bool run_command(lua_State *L, const char *chunk, const char *text)
{
    int base = lua_gettop(L);
    int status = luaL_loadbuffer(L, chunk, strlen(chunk), "=" PROGRAM);
    if (status == LUA_OK) {
        lua_pushstring(L, text);
        status = lua_pcall(L, 1, LUA_MULTRET, 0);
    }
    if (status == LUA_OK) status = lua_pcall(L, lua_gettop(L) - base - 1, 0, 0);
    return hk_print_error(L, status) == LUA_OK;
}

/* name[=option,option...]: a function of jit, or start of the module jit.name */
static const char jit_command[] =
    "local name, options = (...):match('^([^=]*)=?(.*)$')\n"
    "local run = jit[name]\n"
    "if type(run) ~= 'function' then\n"
    "  local found, module = pcall(require, 'jit.' .. name)\n"
    "  if not found and not module:find('not found', 1, true) then error(module, 0) end\n"
    "  run = found and type(module) == 'table' and module.start\n"
    "  if not run then error('unknown luaJIT command or jit.* modules not installed', 0) end\n"
    "end\n"
    "local list = {}\n"
    "for option in options:gmatch('[^,]+') do list[#list + 1] = option end\n"
    "return run, unpack(list)";
static const char jit_optimize[] = "local list = {}\n"
                                   "for option in (...):gmatch('[^,]+') do list[#list + 1] = option end\n"
                                   "return require('jit.opt').start, unpack(list)";
static const char print_jit_status[] =
    "local s = { jit.status() }\n"
    "print('JIT: ' .. (s[1] and 'ON' or 'OFF') .. ' ' .. table.concat(s, ' ', 2))";

static bool run_bytecode(lua_State *L, const hk_options *o)
{
    const char *open = "return require('jit.bcsave').start";
    int status = luaL_loadbuffer(L, open, strlen(open), "=" PROGRAM);
    if (status != LUA_OK || (status = hk_run(L, 0, 1)) != LUA_OK) return false;
    int arguments = 0;
    luaL_checkstack(L, o->argc + 1, "too many arguments");
    if (o->argv[o->bytecode][2] != '\0') { /* -bl is -l */
        lua_pushfstring(L, "-%s", o->argv[o->bytecode] + 2);
        arguments++;
    }
    for (int i = o->bytecode + 1; i < o->argc; i++, arguments++)
        lua_pushstring(L, o->argv[i]);
    return hk_run(L, arguments, 0) == LUA_OK;
}
#else
/* mod is stored in the global mod, without what follows a hyphen; g=mod in g. */
static bool require_library(lua_State *L, const char *text)
{
    const char *equals = strchr(text, '=');
    const char *name = equals != NULL ? equals + 1 : text;
    lua_getglobal(L, "require");
    lua_pushstring(L, name);
    if (hk_run(L, 1, 1) != LUA_OK) return false;
    size_t length = equals != NULL ? (size_t)(equals - text) : strcspn(name, "-");
    lua_pushglobaltable(L);
    lua_pushlstring(L, text, length);
    lua_pushvalue(L, -3);
    lua_settable(L, -3);
    lua_pop(L, 2);
    return true;
}
#endif

static bool run_action(lua_State *L, const hk_action *action)
{
    switch (action->option) {
    case 'e':
        return run_string(L, action->text, "=(command line)");
    case 'l':
        return require_library(L, action->text);
#ifdef HK_LUA_LUAJIT
    case 'j':
        return run_command(L, jit_command, action->text);
    case 'O':
        return run_command(L, jit_optimize, action->text);
#else
    case 'W':
        lua_warning(L, "@on", 0);
        return true;
#endif
    default:
        return false;
    }
}

static void make_arg_table(lua_State *L, const hk_options *o)
{
    int script = o->script;
#ifndef HK_LUA_LUAJIT
    if (script == o->argc) script = 0; /* without a script arg[0] is the program; LuaJIT has it below */
#endif
    lua_createtable(L, o->argc - script, script + 1);
    for (int i = 0; i < o->argc; i++) {
        lua_pushstring(L, o->argv[i]);
        lua_rawseti(L, -2, i - script);
    }
    lua_setglobal(L, "arg");
}

static bool run_script(lua_State *L, const hk_options *o)
{
    int arguments = o->argc - o->script - 1;
    int status = luaL_loadfile(L, o->from_stdin ? NULL : o->argv[o->script]);
    if (status == LUA_OK) {
        luaL_checkstack(L, arguments, "too many arguments to script");
        for (int i = 0; i < arguments; i++)
            lua_pushstring(L, o->argv[o->script + 1 + i]);
    }
    return run_loaded(L, status, arguments);
}

static void print_version(void)
{
#ifdef HK_LUA_LUAJIT
    puts(LUAJIT_VERSION " -- " LUAJIT_COPYRIGHT ". " LUAJIT_URL);
#else
    puts(LUA_COPYRIGHT);
#endif
    fflush(stdout);
}

static void repl(lua_State *L)
{
#ifdef HK_LUA_LUAJIT
    run_string(L, print_jit_status, "=" PROGRAM);
#endif
    const char *before = error_prefix;
    error_prefix = "";
    hk_repl(L);
    error_prefix = before;
}

bool hk_run_program(lua_State *L, const hk_options *o)
{
#ifdef HK_LUA_LUAJIT
    make_arg_table(L, o);
    if (!o->ignore_env && !run_environment(L)) return false;
    if (o->version) print_version();
#else
    if (o->version) print_version();
    make_arg_table(L, o);
    if (!o->ignore_env && !run_environment(L)) return false;
#endif
    for (int i = 0; i < o->action_count; i++)
        if (!run_action(L, &o->actions[i])) return false;
#ifdef HK_LUA_LUAJIT
    if (o->bytecode != 0) return run_bytecode(L, o);
#endif
    bool has_script = o->script < o->argc;
    if (has_script && !run_script(L, o)) return false;
    if (o->interactive) {
        repl(L);
    } else if (!has_script && !o->has_chunk && !o->version) {
        if (isatty(STDIN_FILENO)) {
            print_version();
            repl(L);
        } else {
            run_file(L, NULL); /* the interpreters exit with 0 whatever becomes of it */
        }
    }
    return true;
}

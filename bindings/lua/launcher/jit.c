/* What only LuaJIT's command line has. As in the interpreter, its modules are taken from the registry, so
 * that what a program has done to its globals does not matter. */
#include "launcher.h"

#ifdef HKL_LUAJIT

#include <lauxlib.h>

#include <stdio.h>
#include <string.h>

/* Pushes the loaded module; nil when there is none. */
static void push_module(lua_State *L, const char *name)
{
    lua_getfield(L, LUA_REGISTRYINDEX, "_LOADED");
    lua_getfield(L, -1, name);
    lua_remove(L, -2);
}

/* Pushes `start` of the module jit.<name>. */
static bool push_start(lua_State *L, const char *name)
{
    lua_getglobal(L, "require");
    lua_pushfstring(L, "jit.%s", name);
    if (lua_pcall(L, 1, 1, 0) != LUA_OK) {
        const char *message = lua_tostring(L, -1);
        if (!message || strncmp(message, "module ", 7) != 0) {
            hkl_print_error(L, LUA_ERRRUN);
            return false;
        }
    } else {
        lua_getfield(L, -1, "start");
        if (!lua_isnil(L, -1)) return true;
    }
    hkl_message("unknown luaJIT command or jit.* modules not installed");
    return false;
}

/* Calls the function at the top with options that commas separate; an empty one is nil. */
static bool call_with(lua_State *L, const char *options)
{
    int count = 0;
    while (options && (count > 0 || *options != '\0')) {
        size_t length = strcspn(options, ",");
        luaL_checkstack(L, 1, "too many options");
        if (length > 0) lua_pushlstring(L, options, length);
        else lua_pushnil(L);
        count++;
        options = options[length] == ',' ? options + length + 1 : NULL;
    }
    return hkl_print_error(L, lua_pcall(L, count, 0, 0)) == LUA_OK;
}

/* A function of jit, or else the module jit.name */
bool hkl_jit_command(lua_State *L, const char *command)
{
    size_t length = strcspn(command, "=");
    const char *options = command[length] == '=' ? command + length + 1 : NULL;
    lua_pushlstring(L, command, length);
    push_module(L, "jit");
    lua_pushvalue(L, -2);
    lua_gettable(L, -2);
    if (!lua_isfunction(L, -1) && !push_start(L, lua_tostring(L, -3))) return false;
    bool ok = call_with(L, options);
    lua_settop(L, 0);
    return ok;
}

bool hkl_jit_optimize(lua_State *L, const char *options)
{
    push_module(L, "jit.opt");
    lua_getfield(L, -1, "start");
    bool ok = call_with(L, options);
    lua_settop(L, 0);
    return ok;
}

/* An error of the compiler is said, and the exit status is that of success, as luajit has it. */
bool hkl_jit_bytecode(lua_State *L, const hkl_options *o)
{
    if (!push_start(L, "bcsave")) return false;
    int arguments = 0;
    luaL_checkstack(L, o->argc + 1, "too many arguments");
    if (o->argv[o->bytecode][2] != '\0') { /* -bl is -l */
        lua_pushfstring(L, "-%s", o->argv[o->bytecode] + 2);
        arguments++;
    }
    for (int i = o->bytecode + 1; i < o->argc; i++, arguments++)
        lua_pushstring(L, o->argv[i]);
    hkl_print_error(L, lua_pcall(L, arguments, 0, 0));
    return true;
}

void hkl_jit_print_status(lua_State *L)
{
    lua_settop(L, 0);
    push_module(L, "jit");
    lua_getfield(L, 1, "status");
    lua_remove(L, 1);
    lua_call(L, 0, LUA_MULTRET);
    fputs(lua_toboolean(L, 1) ? "JIT: ON" : "JIT: OFF", stdout);
    const char *text;
    for (int i = 2; (text = lua_tostring(L, i)); i++)
        fprintf(stdout, " %s", text);
    putchar('\n');
    lua_settop(L, 0);
}

/* LuaJITs from November 2023 on do not raise such errors: luaL_newstate, and nothing else, gives a state the
 * handler of this event. It is the only one that such a state has. */
void hkl_jit_print_finalizer_errors(lua_State *L)
{
    lua_State *stock = luaL_newstate();
    lua_CFunction handler = NULL;
    if (!stock) return;
    lua_getfield(stock, LUA_REGISTRYINDEX, "_VMEVENTS");
    if (lua_istable(stock, -1)) {
        lua_pushnil(stock);
        if (lua_next(stock, -2) != 0) handler = lua_tocfunction(stock, -1);
    }
    lua_close(stock);
    if (!handler) return;
    push_module(L, "jit");
    lua_getfield(L, -1, "attach");
    lua_pushcfunction(L, handler);
    lua_pushliteral(L, "errfin");
    lua_call(L, 2, 0);
    lua_pop(L, 1);
}

#else
typedef int hkl_no_jit; /* ISO C has no empty files */
#endif

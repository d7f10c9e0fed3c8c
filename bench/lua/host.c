/* Runs a script as the runtime's own program would, under one allocator (see host.h). All hosts of a
 * runtime are this file and the same shared library of the runtime: only the allocator differs. */
#include "host.h"

#include <lauxlib.h>
#include <lualib.h>
#ifdef HOST_LUAJIT
#include <luajit.h>
#define RUNTIME LUAJIT_VERSION
#else
#define RUNTIME LUA_RELEASE
#endif

#include <stdio.h>
#include <string.h>

static int traceback(lua_State *L)
{
    const char *text = lua_tostring(L, 1);
    lua_getglobal(L, "debug");
    lua_getfield(L, -1, "traceback");
    lua_pushstring(L, text ? text : "error object is not a string");
    lua_pushinteger(L, 2);
    lua_call(L, 2, 1);
    return 1;
}

static int run(lua_State *L, int argc, char **argv)
{
    luaL_openlibs(L);
    lua_createtable(L, argc, 1);
    for (int i = 0; i < argc; i++) {
        lua_pushstring(L, argv[i]);
        lua_rawseti(L, -2, i);
    }
    lua_setglobal(L, "arg");
    lua_pushcfunction(L, traceback);
    int status = luaL_loadfile(L, argv[0]);
    if (status == 0) {
        luaL_checkstack(L, argc, "too many arguments");
        for (int i = 1; i < argc; i++)
            lua_pushstring(L, argv[i]);
        status = lua_pcall(L, argc - 1, 0, 1);
    }
    if (status != 0) fprintf(stderr, "%s\n", lua_tostring(L, -1));
    return status;
}

int main(int argc, char **argv)
{
    bool labels = argc > 1 && strcmp(argv[1], "--labels") == 0;
    if (argc == 2 && strcmp(argv[1], "--version") == 0) {
        printf("%s\n%s\n", RUNTIME, host_allocator());
        return 0;
    }
    int first = labels ? 2 : 1;
    if (first >= argc || argv[first][0] == '-') {
        fprintf(stderr, "usage: %s --version | [--labels] script [arguments]\n", argv[0]);
        return 2;
    }
    lua_State *L = host_open(labels);
    if (!L) {
        fprintf(stderr, "%s: no state%s\n", argv[0], labels ? " with labels" : "");
        return 1;
    }
    int status = run(L, argc - first, argv + first);
    host_close(L);
    return status != 0;
}

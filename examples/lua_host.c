/* A host that runs each script in a Lua state of its own. The states share one space, each has its own
 * heap with a limit of 8 MiB, and a script that passes it gets an error that the host survives.
 *
 *     cc lua_host.c $(pkg-config --cflags lua5.4) ... ; or by CMake: target hakmem::lua_54
 *     ./lua_host a.lua b.lua
 */
#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>

#include <hakmem/lua.h>

#include <stdio.h>

#define LIMIT ((size_t)8 << 20)

static int run(hak_space *space, const char *script)
{
    hak_options options = HAK_OPTIONS_INIT;
    options.name = script;
    lua_State *L = hak_lua_newstate_in(space, &options);
    if (!L) {
        fprintf(stderr, "lua_host: no memory for a state\n");
        return 1;
    }
    luaL_openlibs(L);
    hak_lua_labels(L, true);
    hak_lua_limit(L, 0, LIMIT);

    int failed = luaL_dofile(L, script);
    if (failed) fprintf(stderr, "lua_host: %s: %s\n", script, lua_tostring(L, -1));

    hak_stats stats = {.size = sizeof stats};
    hak_ctx_stats(hak_lua_context(L), &stats);
    printf("%s: %zu of %zu bytes\n", script, stats.committed_bytes, stats.hard_limit);
    hak_lua_report(L, stdout);
    hak_lua_close(L);
    return failed;
}

int main(int argc, char **argv)
{
    hak_space *space = hak_space_new(NULL);
    if (!space) {
        fprintf(stderr, "lua_host: no address space\n");
        return 1;
    }
    int failed = 0;
    for (int i = 1; i < argc; i++)
        failed |= run(space, argv[i]);
    hak_space_delete(space);
    return failed != 0;
}

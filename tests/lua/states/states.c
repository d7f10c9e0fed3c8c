/* states KIND COUNT: makes COUNT states with the standard libraries and closes them, for the instructions of
 * make_states and close_states. KIND is builtin, hakmem or labels. */
#include <hakmem/lua.h>

#include <lauxlib.h>
#include <lualib.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WARM = 8, MOST = 256 };

static const char *kind;
static hak_space *space;

static lua_State *make_state(void)
{
    lua_State *L = strcmp(kind, "builtin") == 0  ? luaL_newstate()
                   : strcmp(kind, "labels") == 0 ? hak_lua_newstate_labelled(space, NULL)
                                                 : hak_lua_newstate_in(space, NULL);
    if (!L) exit(2);
    luaL_openlibs(L);
    return L;
}

__attribute__((noinline)) void make_states(lua_State **states, int count);
__attribute__((noinline)) void close_states(lua_State **states, int count);

void make_states(lua_State **states, int count)
{
    for (int i = 0; i < count; i++)
        states[i] = make_state();
}

void close_states(lua_State **states, int count)
{
    for (int i = 0; i < count; i++)
        lua_close(states[i]);
}

int main(int argc, char **argv)
{
    static lua_State *states[MOST];
    const int count = argc == 3 ? atoi(argv[2]) : 0;
    if (count < 1 || count > MOST) return 2;
    kind = argv[1];
    space = hak_space_new(NULL);
    if (!space) return 2;
    for (int i = 0; i < WARM; i++)
        lua_close(make_state());
    make_states(states, count);
    close_states(states, count);
    hak_space_delete(space);
    return 0;
}

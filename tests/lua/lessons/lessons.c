/* lessons FOLDER: learns the runtime that it is linked with, or that loads it as a module (with the global
 * FOLDER), and keeps the lessons in the folder. It has none of the runtimes of distributions: those are what
 * scripts/lua-lessons makes of its files, and what test_lessons.py compares with them. */
#include "lesson/known.h"

#include <hakmem/lua.h>

#include <lauxlib.h>
#include <lualib.h>

#include <stdio.h>

const hkl_lesson_known hkl_lessons_known[] = {{0}}; /* in place of those of the library */

static const char *learn(const char *folder)
{
    if (hak_lua_lessons(folder) != 0) return "the folder's name is too long";
    lua_State *L = hak_lua_newstate_labelled(NULL, NULL);
    if (!L) return "no state";
    luaL_openlibs(L);
    const char *failed = hak_lua_limit(L, 0, 64u << 20) != 0   ? "no limit"
                         : hak_lua_profile_start(L, NULL) != 0 ? "no profile"
                                                               : NULL;
    lua_close(L);
    return failed;
}

__attribute__((visibility("default"))) int luaopen_lessons(lua_State *L);
int luaopen_lessons(lua_State *L)
{
    lua_getglobal(L, "FOLDER");
    const char *failed = learn(luaL_checkstring(L, -1));
    return failed ? luaL_error(L, "%s", failed) : 0;
}

#ifndef MODULE
int main(int argc, char **argv)
{
    const char *failed = argc == 2 ? learn(argv[1]) : "lessons FOLDER";
    if (failed) fprintf(stderr, "%s\n", failed);
    return failed != NULL;
}
#endif

/* What the launcher says on standard error, as the interpreter itself does. */
#include "launcher.h"

#include <stdio.h>

const char *hkl_program = PROGRAM;

void hkl_message(const char *text)
{
    if (hkl_program) fprintf(stderr, "%s: ", hkl_program);
    fprintf(stderr, "%s\n", text);
}

/* error(nil) is silent before 5.3. */
static bool is_silent(lua_State *L)
{
    return LUA_VERSION_NUM < 503 && lua_isnil(L, -1);
}

void hkl_print_last_error(lua_State *L, int status)
{
    if (status == LUA_OK) return;
    const bool silent = is_silent(L);
    const char *message = lua_tostring(L, -1);
    if (!message)
        message = LUA_VERSION_NUM < 503      ? "(error object is not a string)"
                  : hkl_from_release(504, 7) ? "(error message not a string)"
                                             : "(null)";
    if (!silent) hkl_message(message);
    lua_pop(L, 1);
}

int hkl_print_error(lua_State *L, int status)
{
    const bool collects = LUA_VERSION_NUM == 502 && status != LUA_OK && !is_silent(L);
    hkl_print_last_error(L, status);
    if (collects) lua_gc(L, LUA_GCCOLLECT, 0);
    return status;
}

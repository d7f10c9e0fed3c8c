/* Which release of the runtime is loaded: the library may be newer than the headers that the launcher was
 * compiled with, and what its interpreter prints differs. */
#define _GNU_SOURCE /* RTLD_DEFAULT */
#include "launcher.h"

#include <lauxlib.h>

#ifndef _WIN32
#include <dlfcn.h>
#endif
#include <stdio.h>
#include <string.h>

#ifdef HKL_LUAJIT

#include <luajit.h>

static char loaded[64] = LUAJIT_VERSION;

void hkl_version_learn(lua_State *L)
{
    lua_getglobal(L, "jit");
    lua_getfield(L, -1, "version");
    const char *text = lua_tostring(L, -1);
    if (text) snprintf(loaded, sizeof loaded, "%s", text);
    lua_pop(L, 2);
}

/* The years of the copyright are known from the headers alone. */
void hkl_print_version(void)
{
    printf("%s -- " LUAJIT_COPYRIGHT ". " LUAJIT_URL "\n", loaded);
}

#elif LUA_VERSION_NUM == 501

void hkl_version_learn(lua_State *L)
{
    (void)L;
}

void hkl_print_version(void)
{
    fputs(LUA_RELEASE "  " LUA_COPYRIGHT "\n", stderr);
}

#else

static const char number[] = "Lua " LUA_VERSION_MAJOR "." LUA_VERSION_MINOR ".";
static char loaded[128] = LUA_COPYRIGHT; /* "Lua 5.4.4  Copyright ..." */

/* The library has the same text in lua_ident, between words of its own. A launcher that was linked with an
 * archive does not export that name, and has the text of its headers. */
void hkl_version_learn(lua_State *L)
{
#ifdef _WIN32 /* the launcher is linked with an archive */
    const char *ident = NULL;
#else
    const char *ident = dlsym(RTLD_DEFAULT, "lua_ident");
#endif
    const char *begin = ident ? strstr(ident, number) : NULL;
    const char *end = begin ? strstr(begin, " $") : NULL;
    (void)L;
    if (end && (size_t)(end - begin) < sizeof loaded)
        snprintf(loaded, sizeof loaded, "%.*s", (int)(end - begin), begin);
}

bool hkl_from_release(int version, int release)
{
    int now = 0; /* 7 for 5.4.7 */
    sscanf(loaded + sizeof number - 1, "%d", &now);
    return LUA_VERSION_NUM > version || (LUA_VERSION_NUM == version && now >= release);
}

void hkl_print_version(void)
{
    puts(loaded);
    fflush(stdout);
}

#endif

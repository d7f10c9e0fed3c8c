/* Interactive mode. */
#include "launcher.h"

#include <lauxlib.h>

#include <stdio.h>
#include <string.h>

#ifndef LUA_OK
#define LUA_OK 0
#endif
#define LINE_MAX_BYTES 1024

static void print_prompt(lua_State *L, bool first)
{
    lua_getglobal(L, first ? "_PROMPT" : "_PROMPT2");
    const char *prompt = lua_tostring(L, -1);
    fputs(prompt != NULL ? prompt : first ? "> " : ">> ", stdout);
    fflush(stdout);
    lua_pop(L, 1);
}

/* Pushes a line of any length, without its end; false = end of the input. */
static bool read_line(lua_State *L, bool first)
{
    char part[LINE_MAX_BYTES];
    bool any = false;
    print_prompt(L, first);
    lua_pushliteral(L, "");
    while (fgets(part, sizeof part, stdin) != NULL) {
        size_t n = strlen(part);
        bool whole = n > 0 && part[n - 1] == '\n';
        lua_pushlstring(L, part, whole ? n - 1 : n);
        lua_concat(L, 2);
        any = true;
        if (whole) break;
    }
    if (!any) lua_pop(L, 1);
    return any;
}

/* A chunk that only needs more lines has its syntax error at <eof>. */
static bool is_incomplete(lua_State *L, int status)
{
    if (status != LUA_ERRSYNTAX) return false;
    size_t n;
    const char *message = lua_tolstring(L, -1, &n);
    const char *ends[] = {"<eof>", "'<eof>'"};
    for (int i = 0; i < 2; i++) {
        size_t m = strlen(ends[i]);
        if (n >= m && memcmp(message + n - m, ends[i], m) == 0) return true;
    }
    return false;
}

static int load(lua_State *L)
{
    size_t n;
    const char *text = lua_tolstring(L, -1, &n);
    return luaL_loadbuffer(L, text, n, "=stdin");
}

/* Pushes the line at the top as an expression, compiled; LuaJIT has only `= expression`. Else pushes
 * something that is not a function. */
static int load_expression(lua_State *L)
{
    const char *line = lua_tostring(L, -1);
    bool marked = *line == '=';
#ifdef HK_LUA_LUAJIT
    if (!marked) {
        lua_pushnil(L);
        return LUA_ERRSYNTAX;
    }
#endif
    lua_pushfstring(L, "return %s", marked ? line + 1 : line);
    int status = load(L);
    lua_remove(L, -2);
    return status;
}

/* What becomes of a chunk that the end of the input cuts off: LuaJIT says nothing and ends. */
#ifdef HK_LUA_LUAJIT
#define CUT_OFF (-1)
#else
#define CUT_OFF LUA_ERRSYNTAX
#endif

/* Replaces the line at the top, and more lines if needed, by a chunk or by a message. */
static int load_line(lua_State *L)
{
    int status = load_expression(L);
    while (status != LUA_OK) {
        lua_pop(L, 1);
        status = load(L);
        if (!is_incomplete(L, status)) break;
        lua_pushvalue(L, -2);
        if (!read_line(L, false)) {
            lua_pop(L, 1);
            status = CUT_OFF;
            break;
        }
        lua_pushliteral(L, "\n");
        lua_insert(L, -2);
        lua_concat(L, 3);
        lua_replace(L, -3);
    }
    lua_remove(L, -2);
    return status;
}

static void print_results(lua_State *L)
{
    int n = lua_gettop(L);
    if (n == 0) return;
    lua_getglobal(L, "print");
    lua_insert(L, 1);
    hk_print_error(L, lua_pcall(L, n, 0, 0));
}

void hk_repl(lua_State *L)
{
    lua_settop(L, 0);
    while (read_line(L, true)) {
        int status = load_line(L);
        if (status < 0) break;
        if (status != LUA_OK) hk_print_error(L, status);
        else if (hk_run(L, 0, LUA_MULTRET) == LUA_OK) print_results(L);
        lua_settop(L, 0);
    }
    putchar('\n');
    fflush(stdout);
}

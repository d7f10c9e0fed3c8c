/* Interactive mode. */
#include "launcher.h"

#include <lauxlib.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void print_prompt(lua_State *L, bool first)
{
    lua_getglobal(L, first ? "_PROMPT" : "_PROMPT2");
#if LUA_VERSION_NUM >= 504
    const char *prompt = lua_isnil(L, -1) ? NULL : luaL_tolstring(L, -1, NULL);
#else
    const char *prompt = lua_tostring(L, -1);
#endif
    fputs(prompt ? prompt : first ? "> " : ">> ", stdout);
    fflush(stdout);
    lua_pop(L, prompt && LUA_VERSION_NUM >= 504 ? 2 : 1);
}

/* Reads a line of any length with its end, as getline does, which Windows does not have. NULL = end of the
 * input, or no memory. */
static char *get_line(void)
{
    static char *line;
    static size_t room;
    for (size_t n = 0;; n += strlen(line + n)) {
        if (room - n < 2) {
            const size_t larger = room ? 2 * room : 256;
            char *moved = realloc(line, larger);
            if (!moved) return NULL;
            line = moved;
            room = larger;
        }
        line[n] = '\0';
        if (!fgets(line + n, (int)(room - n < 65536 ? room - n : 65536), stdin)) return n > 0 ? line : NULL;
        if (strchr(line + n, '\n')) return line;
    }
}

/* Pushes a line of any length, without its end; in the first one `=` is `return`, until 5.4. false = end of
 * the input. */
static bool read_line(lua_State *L, bool first)
{
    print_prompt(L, first);
    char *line = get_line();
    if (!line) return false;
    size_t n = strlen(line);
    if (n > 0 && line[n - 1] == '\n') line[--n] = '\0';
    if (LUA_VERSION_NUM <= 504 && first && line[0] == '=') lua_pushfstring(L, "return %s", line + 1);
    else lua_pushlstring(L, line, n);
    return true;
}

#if LUA_VERSION_NUM == 501
#define END_MARK "'<eof>'"
#else
#define END_MARK "<eof>"
#endif

/* A chunk that only needs more lines has its syntax error at the end. */
static bool is_incomplete(lua_State *L, int status)
{
    if (status != LUA_ERRSYNTAX) return false;
    const size_t m = strlen(END_MARK);
    size_t n;
    const char *message = lua_tolstring(L, -1, &n);
    return n >= m && memcmp(message + n - m, END_MARK, m) == 0;
}

static int load(lua_State *L)
{
    size_t n;
    const char *text = lua_tolstring(L, -1, &n);
    return luaL_loadbuffer(L, text, n, "=stdin");
}

/* Pushes the line at the top as an expression, compiled; before 5.3 there is only `= expression`. Else pushes
 * something that is not a function. */
static int load_expression(lua_State *L)
{
#if LUA_VERSION_NUM < 503
    lua_pushnil(L);
    return LUA_ERRSYNTAX;
#else
    lua_pushfstring(L, "return %s;", lua_tostring(L, -1));
    int status = load(L);
    lua_remove(L, -2);
    return status;
#endif
}

/* A first line that begins with `local` and that is no expression. */
static void warn_of_local(const char *line)
{
    static const char word[] = "local", space[] = " \t";
    if (LUA_VERSION_NUM < 505) return;
    line += strspn(line, space);
    if (strncmp(line, word, strlen(word)) == 0 && strchr(space, line[strlen(word)]))
        hkl_message("warning: locals do not survive across lines in interactive mode");
}

/* Replaces the line at the top, and more lines if needed, by a chunk or by a message. -1 = the end of the
 * input cuts a chunk off, and so ends those before 5.3, which say nothing. */
static int load_line(lua_State *L)
{
    int status = load_expression(L);
    if (status != LUA_OK) warn_of_local(lua_tostring(L, -2));
    while (status != LUA_OK) {
        lua_pop(L, 1);
        status = load(L);
        if (!is_incomplete(L, status)) break;
        lua_pushvalue(L, -2);
        if (!read_line(L, false)) {
            lua_pop(L, 1);
            if (LUA_VERSION_NUM < 503) status = -1;
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
    luaL_checkstack(L, LUA_MINSTACK, "too many results to print");
    lua_getglobal(L, "print");
    lua_insert(L, 1);
    if (lua_pcall(L, n, 0, 0) != LUA_OK)
        hkl_message(lua_pushfstring(L, "error calling 'print' (%s)", lua_tostring(L, -1)));
}

void hkl_repl(lua_State *L)
{
    const char *program = hkl_program;
    hkl_program = NULL;
    lua_settop(L, 0);
    while (read_line(L, true)) {
        int status = load_line(L);
        if (status < 0) break;
        if (status != LUA_OK) hkl_print_error(L, status);
        else if (hkl_run(L, 0, LUA_MULTRET) == LUA_OK) print_results(L);
        lua_settop(L, 0);
    }
    lua_settop(L, 0);
    putchar('\n');
    fflush(stdout);
    hkl_program = program;
}

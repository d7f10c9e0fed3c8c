/* limits ALLOCATOR SCRIPT [ARGUMENT...]: the smallest limit with which a script runs, in bytes, and how many bytes it
 * uses without one; one line of JSON. ALLOCATOR:
 *
 *   counting   a lua_Alloc on malloc that counts the bytes that Lua asks for, and refuses what is beyond the limit
 *   hakmem     a state of hakmem with hak_lua_limit
 *
 * The limit is set when the libraries are open, and falls by a part in 64 until a run fails: smaller ones may succeed
 * again, as the collector happens to run. A state that is refused memory more often than MOST_REFUSALS fails, since PUC
 * Lua collects all its garbage at each refusal: with a limit near what is live, it does little else. */
#include <hakmem/lua.h>

#include <lauxlib.h>
#include <lualib.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_REFUSALS = 300, STEPS = 64 };

static struct {
    lua_Alloc next; /* of hakmem; NULL: malloc */
    void *ud;
    size_t limit, used, most; /* of malloc: bytes asked for */
    unsigned refusals;
} heap;

static void fail(const char *what)
{
    fprintf(stderr, "limits: %s\n", what);
    exit(1);
}

static void *counting(void *p, size_t old, size_t n)
{
    if (!p) old = 0;
    if (n > old && heap.limit && heap.used + (n - old) > heap.limit) return NULL;
    void *q = n ? realloc(p, n) : NULL;
    if (n == 0) free(p);
    else if (!q) return NULL;
    heap.used += n - old;
    if (heap.used > heap.most) heap.most = heap.used;
    return q;
}

static void *allocate(void *ud, void *p, size_t old, size_t n)
{
    (void)ud;
    bool grows = n && (!p || n > old);
    if (grows && heap.refusals > MOST_REFUSALS) return NULL;
    void *q = heap.next ? heap.next(heap.ud, p, old, n) : counting(p, old, n);
    heap.refusals += n && !q;
    return q;
}

static int silent(lua_State *L)
{
    (void)L;
    return 0;
}

static int run(lua_State *L, int argc, char **argv)
{
    lua_createtable(L, argc, 1);
    for (int i = 0; i < argc; i++) {
        lua_pushstring(L, argv[i]);
        lua_rawseti(L, -2, i);
    }
    lua_setglobal(L, "arg");
    lua_pushcfunction(L, silent);
    lua_setglobal(L, "print");
    int status = luaL_loadfile(L, argv[0]);
    return status ? status : lua_pcall(L, 0, 0, 0);
}

static size_t committed(lua_State *L)
{
    hak_stats s = {.size = sizeof s};
    if (hak_ctx_stats(hak_lua_context(L), &s) != 0) fail("no statistics");
    return s.committed_bytes;
}

/* Runs the script with a limit (0 = none) in a state of its own. Returns whether it ended well; *took = the bytes in
 * use, or committed, at its end or at their peak. */
static bool attempt(bool hak, size_t limit, int argc, char **argv, size_t *took)
{
    memset(&heap, 0, sizeof heap);
    lua_State *L = hak ? hak_lua_newstate(NULL) : lua_newstate(allocate, NULL);
    if (!L) fail("no state");
    luaL_openlibs(L);
    heap.limit = limit;
    if (hak && hak_lua_limit(L, 0, limit) != 0) fail("no limit");
    lua_Alloc f = hak ? lua_getallocf(L, &heap.ud) : NULL;
    heap.next = f;
    if (hak) lua_setallocf(L, allocate, NULL);
    int status = run(L, argc, argv);
    if (!limit && status) fail(lua_tostring(L, -1));
    heap.limit = heap.refusals = 0;
    if (hak) lua_setallocf(L, f, heap.ud);
    *took = hak ? committed(L) : heap.most;
    lua_close(L);
    return status == 0;
}

int main(int argc, char **argv)
{
    bool hak = argc > 2 && strcmp(argv[1], "hakmem") == 0;
    if (!hak && (argc < 3 || strcmp(argv[1], "counting") != 0)) {
        fprintf(stderr, "usage: limits counting|hakmem script [arguments]\n");
        return 2;
    }
    size_t free_running, ignored;
    attempt(hak, 0, argc - 2, argv + 2, &free_running);
    size_t limit = free_running;
    while (!attempt(hak, limit, argc - 2, argv + 2, &ignored))
        limit += limit / 4;
    while (attempt(hak, limit - limit / STEPS, argc - 2, argv + 2, &ignored))
        limit -= limit / STEPS;
    printf("{\"free_bytes\": %zu, \"limit_bytes\": %zu}\n", free_running, limit);
    return 0;
}

/* A running state changes its allocator. The context ends with the main thread's block, which is one of
 * the old allocator: after lua_close has freed everything else. */
#include "adopt.h"
#include "alloc.h"
#include "hakmem/lua.h"
#include "lesson/lesson.h"
#include "state.h"

#include <lauxlib.h>

#if LUA_VERSION_NUM == 501
/* Keeps the thread alive that lua_gc is called with. */
static const char anchor_key = 0;

/* LuaJIT without GC64 has 32-bit pointers, and its own allocator keeps below 2^32. */
static bool has_32_bit_pointers(lua_State *L)
{
    lua_getglobal(L, "jit");
    bool is_luajit = lua_istable(L, -1);
    lua_pop(L, 1);
    return is_luajit && sizeof(void *) == 8 && (uintptr_t)L >> 32 == 0;
}
#endif

/* Whether f is what luaL_newstate gives a state; -1 = no memory to see. */
static int is_stock(lua_Alloc f)
{
    lua_State *scratch = luaL_newstate();
    if (!scratch) return -1;
    void *ud;
    const bool same = lua_getallocf(scratch, &ud) == f;
    lua_close(scratch);
    return same;
}

static const char *host_in_the_way(lua_State *L, const hkl_adoption *how)
{
    static const char is_limit[] =
        "the program has given this state an allocator of its own, whose limit would no longer hold; "
        "require(\"hakmem.adopt\"){ limit = \"64M\" } sets one in its place (0 = none)";
    void *ud;
    if (how->has_limit) return NULL;
    const int stock = is_stock(lua_getallocf(L, &ud));
    if (stock < 0) return "no memory for a context";
    return stock ? NULL : is_limit;
}

const char *hkl_adopt(lua_State *L, const hkl_adoption *how)
{
    lua_State *main = hkl_main_thread(L);
    const char *host = host_in_the_way(L, how);
    if (host) return host;
#if LUA_VERSION_NUM == 501
    if (has_32_bit_pointers(L)) return "this LuaJIT is built without GC64 and cannot use memory above 4 GiB";
    if (!main) {
        lua_pushlightuserdata(L, (void *)(uintptr_t)&anchor_key);
        lua_pushthread(L);
        lua_rawset(L, LUA_REGISTRYINDEX);
    }
#endif
    hkl_lesson_user_folder();
    hak_options options = HAK_OPTIONS_INIT;
    options.shared = how->shared;
    hak_ctx *ctx = hkl_context_new(NULL, &options);
    hkl_state *st = ctx ? hkl_state_new(ctx, main) : NULL;
    if (!st) {
        hak_ctx_destroy(ctx);
        return "no memory for a context";
    }
    st->owns_ctx = true;
    st->old_alloc = lua_getallocf(L, &st->old_ud);
    if (!main) { /* a coroutine: the end of the state is not seen, the context stays; but its own end is */
        st->main = L;
        st->last = hkl_last_block(L);
        st->stays = true;
    }
    hak_limit(ctx, 0, how->limit, NULL, NULL); /* now: what comes with hak_lua_limit may fail */
    lua_setallocf(L, hkl_alloc_for(st), st);
    hak_lua_labels(L, true);
    return how->limit == 0 || hak_lua_limit(L, 0, how->limit) == 0 ? NULL : "no memory for the limit";
}

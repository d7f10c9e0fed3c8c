#include "end.h"

#include "alloc.h"
#include "shared.h"

#include <hakmem/profile.h>

#include <lauxlib.h>

/* In the registry. */
#define KEY "hakmem.end"

/* The last block, or a state that does not end yet. */
__attribute__((noinline)) static void *come_back(hkl_state *st, void *ptr, size_t osize, size_t nsize,
                                                 hak_site site)
{
    if (nsize == 0) return hkl_free(st, ptr, osize);
    if (!ptr && hkl_is_strange(st, nsize, site)) return NULL; /* a new state keeps hkl_end_alloc */
    const lua_Alloc usual = hkl_alloc_for(st);
    st->ending = false;
    if (st->main) lua_setallocf(st->main, usual, st);
    return usual(st, ptr, osize, nsize);
}

void *hkl_end_alloc(void *ud, void *ptr, size_t osize, size_t nsize)
{
    hkl_state *st = ud;
    if (__builtin_expect(nsize == 0 && ptr != st->last && st->ending, 1)) return NULL;
    return come_back(st, ptr, osize, nsize, HAK_CALLSITE());
}

/* Whether nobody misses a block that is not freed. */
static bool ends_whole(const hkl_state *st, lua_Alloc now)
{
    hak_profile_info info = {.size = sizeof info};
    return st->owns_ctx && st->last && !st->stays && !st->shared && !st->profile && !hkl_has_others(st) &&
           now == hkl_alloc_for(st) && hak_profile_stats(st->ctx, &info) != 0;
}

/* lua_close calls this in the main thread, from no function. The object is in the registry until then; a
 * program that takes it from there, or calls this by itself, ends nothing. */
static int on_end(lua_State *L)
{
    void *ud;
    lua_Debug caller;
    hkl_state *st = hkl_state_of(L);
    if (!st || L != st->main || lua_getstack(L, 1, &caller) || !ends_whole(st, lua_getallocf(L, &ud)))
        return 0;
    lua_getfield(L, LUA_REGISTRYINDEX, KEY);
    if (!lua_rawequal(L, 1, -1)) return 0;
    st->ending = true;
    lua_setallocf(L, hkl_end_alloc, st);
    return 0;
}

static int make(lua_State *L)
{
#if LUA_VERSION_NUM >= 502
    lua_createtable(L, 0, 1); /* is its own metatable */
    lua_pushvalue(L, -1);
#else
    lua_newuserdata(L, 0);
    lua_createtable(L, 0, 1);
#endif
    lua_pushcfunction(L, on_end);
    lua_setfield(L, -2, "__gc");
    lua_setmetatable(L, -2);
    lua_setfield(L, LUA_REGISTRYINDEX, KEY);
    return 0;
}

void hkl_end_prepare(lua_State *L)
{
#if LUA_VERSION_NUM >= 502
    lua_pushcfunction(L, make);
    if (lua_pcall(L, 0, 0, 0) != 0) lua_settop(L, 0);
#else
    if (lua_cpcall(L, make, NULL) != 0) lua_settop(L, 0);
#endif
}

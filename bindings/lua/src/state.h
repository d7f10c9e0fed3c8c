/* What a Lua state under hakmem has beside its context. The lua_Alloc functions of this binding, except
 * hak_lua_alloc itself, get a hk_lua_state as their ud. It lives in the context that it names. */
#ifndef HK_LUA_STATE_H
#define HK_LUA_STATE_H

#include "hakmem/hakmem.h"

#include <lua.h>

#include <stddef.h>
#include <stdint.h>

typedef struct hk_lua_labels hk_lua_labels;

typedef struct hk_lua_state {
    hak_ctx *ctx;
    hk_lua_labels *labels; /* NULL = no attribution */
    int64_t until_check;   /* bytes of growth until hk_lua_check_pressure; INT64_MAX without a limit */
    void *last;            /* the block that lua_close frees last; NULL = not known (yet) */
    lua_Alloc old_alloc;   /* of an adopted state: owner of the blocks from before; else NULL */
    void *old_ud;
    lua_State *main; /* a thread that lives as long as the state */
    hak_label scope; /* label of the running hakmem.label; 0 = none */
    bool owns_ctx;   /* the context goes with the last block */
    bool hurried;    /* the collector runs at the speed of hk_lua_check_pressure */
    int stepmul;     /* the program's own, while hurried */
    size_t soft, hard;
    bool warn_on, warn_continues; /* 5.4: the state of the warning function */
} hk_lua_state;

/* The slow sides of the inline functions below. */
void hk_lua_check_pressure(hk_lua_state *st);
void hk_lua_free_last(hk_lua_state *st, void *ptr, size_t osize);
void *hk_lua_migrate(hk_lua_state *st, void *ptr, size_t osize, size_t nsize, hak_label label, hak_site site);

/* A block that was there before the state was adopted. */
static inline bool hk_lua_is_foreign(const hk_lua_state *st, const void *ptr)
{
    return st->old_alloc != NULL && !hak_owns(st->ctx, ptr);
}

/* nsize == 0, whatever ptr is. `st` may be gone afterwards. */
static inline void *hk_lua_free(hk_lua_state *st, void *ptr, size_t osize)
{
    if (ptr == NULL) return NULL;
    if (ptr == st->last) hk_lua_free_last(st, ptr, osize);
    else if (hk_lua_is_foreign(st, ptr)) st->old_alloc(st->old_ud, ptr, osize, 0);
    else hak_free_sized(st->ctx, ptr, osize);
    return NULL;
}

/* Before every growth by `bytes`: the collector is hurried when memory gets short. */
static inline void hk_lua_grow(hk_lua_state *st, size_t bytes)
{
    st->until_check -= (int64_t)bytes;
    if (__builtin_expect(st->until_check < 0, 0)) hk_lua_check_pressure(st);
}

/* The order in a lua_Alloc with a hk_lua_state:
 *     if (nsize == 0) return hk_lua_free(st, ptr, osize);
 *     if (ptr == NULL) { hk_lua_grow(st, nsize); allocate }
 *     else if (hk_lua_is_foreign(st, ptr)) return hk_lua_migrate(...);
 *     else { if (nsize > osize) hk_lua_grow(st, nsize - osize); hak_realloc_sized_cs }
 * osize is a type tag, not a size, when ptr is NULL. */

/* The state behind L; NULL when L does not run under hakmem or has plain hak_lua_alloc. */
hk_lua_state *hk_lua_state_of(lua_State *L);

/* The same; one is made for a state with plain hak_lua_alloc. NULL when L does not run under hakmem, when
 * there is no memory, or when the main thread is not to be found (LuaJIT, 5.1: L must be it). */
hk_lua_state *hk_lua_state_attach(lua_State *L);

/* Lua's larger blocks, tables and buffers that double, come in many sizes: what is not in use is for all of
 * them. */
enum { HK_LUA_KEPT_MOST = 8 << 10 };

/* A context for a Lua state: magazine_most is HK_LUA_KEPT_MOST where the options leave it open. NULL = no
 * memory, or broken options. */
hak_ctx *hk_lua_context_new(hak_space *space, const hak_options *options);

/* A new state structure in ctx for the Lua state that has `main`, or NULL for one to be made. The caller
 * installs hk_lua_alloc_for(). */
hk_lua_state *hk_lua_state_new(hak_ctx *ctx, lua_State *main);

/* The thread that lives as long as the state; NULL when it is not to be found. */
lua_State *hk_lua_main_thread(lua_State *L);
/* The block in which the main thread lies, which lua_close frees last. */
void *hk_lua_last_block(lua_State *main);

#endif

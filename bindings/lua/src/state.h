/* What a Lua state under hakmem has beside its context. The lua_Alloc functions of this binding, except
 * hak_lua_alloc itself, get a hkl_state as their ud. It lives in the context that it names. */
#ifndef HKL_STATE_H
#define HKL_STATE_H

#include "hakmem/hakmem.h"
#include "newstate.h"

#include <lua.h>

#include <stddef.h>
#include <stdint.h>

typedef struct hkl_labels hkl_labels;
typedef struct hkl_profile hkl_profile;

typedef struct hkl_state {
    hak_ctx *ctx;
    hkl_labels *labels;   /* NULL = never had any; stays, for the lua_Alloc of states beside */
    hkl_profile *profile; /* of malloc; NULL = there was none */
    int64_t until_check;  /* bytes of growth until hkl_check_pressure; INT64_MAX = nobody has to look */
    void *last;           /* the block that lua_close frees last; NULL = not known (yet), or freed */
    lua_Alloc old_alloc;  /* of an adopted state: owner of the blocks from before; else NULL */
    void *old_ud;
    lua_State *main;   /* a thread that lives as long as the state; local: NULL when `ended` */
    hak_label scope;   /* local: label of the running hakmem.label; 0 = none */
    bool owns_ctx;     /* the context goes with the last block */
    uint8_t events;    /* of LuaJIT's, which had handlers that are not called just now */
    bool hurried;      /* the collector runs at the speed of hkl_check_pressure */
    int stepmul;       /* the program's own, while hurried */
    size_t soft, hard; /* soft is not 0 where hard is not */
    bool restarts;     /* a soft limit starts a collector that the program has stopped */
    bool closing;      /* lua_close runs, and `hard` is what src/close.h made of it */
    bool ending;       /* lua_close runs, and all of it goes with `last`: src/end.h */
    void *reserve;     /* LuaJIT, 5.1: a block that is given up when Lua is refused one; NULL = none */
    size_t reserve_size;
    size_t live_seen; /* LuaJIT: live bytes at the last look at the committed memory */
    bool recorded;    /* LuaJIT: a trace was being recorded when hkl_collect_soon set its hook */
    bool forbids;     /* LuaJIT: no trace is begun until the hook of hkl_collect_soon has run */
    bool collects;    /* LuaJIT: hkl_collect_soon is to be called again */
    bool leaves;      /* LuaJIT: finalizers are kept from where compiled code is left, src/leave.h */
    size_t idle;      /* LuaJIT: what was allocated since something was freed, as the looks tell */
    bool warn_on, warn_continues; /* 5.4, 5.5: the state of the warning function */
    bool labelled;                /* new blocks get labels */
    bool shared;                  /* the context is: src/shared.h */
    bool others;                  /* another state was made with this one's lua_Alloc */
    bool ended;                   /* the state that came first, while others have blocks */
    bool stays;                   /* `last` is not the last block, and st and the context stay */
    uintptr_t thread;             /* local: on which the state was seen last, hkl_thread_now() */
} hkl_state;

/* The slow sides of the inline functions below. */
void hkl_check_pressure(hkl_state *st);
/* Before the binding gives NULL, which is nearly always what this returns: the context has refused a new
 * block, or that ptr grows from osize. For a ptr that is foreign it returns a new block, without what is in
 * ptr. */
void *hkl_refused(hkl_state *st, void *ptr, size_t osize, size_t nsize, hak_label label, hak_site site);
#if LUA_VERSION_NUM == 501
/* Handlers of jit.attach that are not called since then are, if the hook that sees to that has been replaced.
 */
void hkl_events_back(hkl_state *st);
/* LuaJIT runs a full collection at the next instruction that is interpreted, if nobody has a hook. false =
 * such an instruction may not come: to be called again at the next allocation, while hkl_collects_soon. */
bool hkl_collect_soon(hkl_state *st);
bool hkl_collects_soon(const hkl_state *st);
/* Where st->leaves: looks whether the next step of the collector may come to a finalizer (src/leave.h). */
void hkl_leave(hkl_state *st, size_t bytes);
#else
static inline void hkl_events_back(hkl_state *st)
{
    (void)st;
}
static inline bool hkl_collect_soon(hkl_state *st)
{
    (void)st;
    return true;
}
static inline bool hkl_collects_soon(const hkl_state *st)
{
    (void)st;
    return false;
}
#endif
/* Gives up the reserve, if there is one. */
static inline void hkl_reserve_free(hkl_state *st)
{
    if (st->reserve) hak_free_sized(st->ctx, st->reserve, st->reserve_size);
    st->reserve = NULL;
}
void hkl_free_last(hkl_state *st, void *ptr, size_t osize);
/* A string of 5.5 that took over the memory of a luaL_Buffer keeps the lua_Alloc that was installed then, and
 * is freed by it, although the state may have another one by now. So there every function of this binding
 * asks what the state has when a block is freed; elsewhere the function that is called is the one that is
 * needed. */
#if LUA_VERSION_NUM >= 505
static inline bool hkl_frees_watched(const hkl_state *st)
{
    return __builtin_expect(!!st->profile, 0);
}
void *hkl_free_watched(hkl_state *st, void *ptr, size_t osize);
#else
static inline bool hkl_frees_watched(const hkl_state *st)
{
    (void)st;
    return false;
}
#define hkl_free_watched(st, ptr, osize) NULL
#endif
void *hkl_migrate(hkl_state *st, void *ptr, size_t osize, size_t nsize, hak_label label, hak_site site);

/* A block that was there before the state was adopted. */
static inline bool hkl_is_foreign(const hkl_state *st, const void *ptr)
{
    return st->old_alloc && !hak_owns(st->ctx, ptr);
}

/* nsize == 0, whatever ptr is. `st` may be gone afterwards. */
static inline void *hkl_free(hkl_state *st, void *ptr, size_t osize)
{
    if (!ptr) return NULL;
    if (ptr == st->last) hkl_free_last(st, ptr, osize);
    else if (hkl_is_foreign(st, ptr)) st->old_alloc(st->old_ud, ptr, osize, 0);
    else hak_free_sized(st->ctx, ptr, osize);
    return NULL;
}

/* Before every growth by `bytes`: the collector is hurried when memory gets short. */
static inline void hkl_grow(hkl_state *st, size_t bytes)
{
    st->until_check -= (int64_t)bytes;
    if (__builtin_expect(st->until_check < 0, 0)) hkl_check_pressure(st);
#if LUA_VERSION_NUM == 501
    if (__builtin_expect(st->leaves, 0)) hkl_leave(st, bytes);
#endif
}

static inline void *hkl_new(hkl_state *st, size_t nsize, hak_label label, hak_site site)
{
    hkl_grow(st, nsize);
    void *p = hak_alloc_cs(st->ctx, nsize, label, site);
    return __builtin_expect(!!p, 1) ? p : hkl_refused(st, NULL, 0, nsize, label, site);
}

static inline void *hkl_resize(hkl_state *st, void *ptr, size_t osize, size_t nsize, hak_label label,
                               hak_site site)
{
    if (hkl_is_foreign(st, ptr)) return hkl_migrate(st, ptr, osize, nsize, label, site);
    if (nsize > osize) hkl_grow(st, nsize - osize);
    void *p = hak_realloc_sized_cs(st->ctx, ptr, osize, nsize, label, site);
    return __builtin_expect(!!p, 1) ? p : hkl_refused(st, ptr, osize, nsize, label, site);
}

/* A lua_Alloc with a hkl_state is
 *     nsize == 0 ? hkl_free : !ptr ? hkl_new : hkl_resize
 * osize is a type tag, not a size, when ptr is NULL. */

/* The state behind L; NULL when L does not run under hakmem or has plain hak_lua_alloc. */
hkl_state *hkl_state_of(lua_State *L);

/* The same; one is made for a state with plain hak_lua_alloc. NULL when L does not run under hakmem, when
 * there is no memory, or when the main thread is not to be found (LuaJIT, 5.1: L must be it). */
hkl_state *hkl_state_attach(lua_State *L);

/* Lua's larger blocks, tables and buffers that double, come in many sizes: what is not in use is for all of
 * them. */
enum { HKL_KEPT_MOST = 8 << 10 };

/* A context for a Lua state: hak_tuning.magazine_most is HKL_KEPT_MOST in balanced mode where
 * the options leave it open. NULL = no
 * memory, or broken options. */
hak_ctx *hkl_context_new(hak_space *space, const hak_options *options);

/* A new state structure in ctx for the Lua state that has `main`, or NULL for one to be made. The caller
 * installs hkl_alloc_for(). */
hkl_state *hkl_state_new(hak_ctx *ctx, lua_State *main);

/* Gives L the lua_Alloc that st needs by now; of a local context also the state that came first. */
void hkl_install(hkl_state *st, lua_State *L);

/* The thread that lives as long as the state; NULL when it is not to be found. */
lua_State *hkl_main_thread(lua_State *L);

/* The collector of a scratch state does nothing, but for want of memory. That of 5.5 takes a step whenever a
 * string is made in a buffer, stopped or not, if there is something to do: so it has just ended, and pauses.
 */
static inline void hkl_collector_off(lua_State *L)
{
#if LUA_VERSION_NUM >= 505
    lua_gc(L, LUA_GCPARAM, LUA_GCPPAUSE, 100000);
    lua_gc(L, LUA_GCCOLLECT, 0);
#endif
    lua_gc(L, LUA_GCSTOP, 0);
}

/* The block in which the main thread lies, which lua_close frees last. */
void *hkl_last_block(lua_State *main);

/* For lua_atpanic: a line on standard error. Scratch states have it, too: LuaJIT ends the process from inside
 * where machine code cannot be protected, and says why by this alone. */
int hkl_panic(lua_State *L);

#endif

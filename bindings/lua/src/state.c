/* Making, adopting the allocator of, and ending Lua states. */
#include "state.h"
#include "alloc.h"
#include "end.h"
#include "hakmem/lua.h"
#include "hakmem/tuning.h"
#include "label.h"
#include "lesson/lesson.h"
#include "profile/profile.h"
#include "shared.h"

#include <lauxlib.h>
#ifdef HKL_LUAJIT
#include <luajit.h>
#endif

#include <stdio.h>
#include <string.h>

#ifndef LUA_EXTRASPACE
#define LUA_EXTRASPACE 0 /* 5.1, 5.2 */
#endif

hkl_state *hkl_state_of(lua_State *L)
{
    void *ud;
    return hkl_alloc_has_state(lua_getallocf(L, &ud)) ? ud : NULL;
}

hak_ctx *hak_lua_context(lua_State *L)
{
    void *ud;
    lua_Alloc f = lua_getallocf(L, &ud);
    if (f == hak_lua_alloc) return ud;
    return hkl_alloc_has_state(f) ? ((hkl_state *)ud)->ctx : NULL;
}

lua_State *hkl_main_thread(lua_State *L)
{
#ifdef LUA_RIDX_MAINTHREAD
    lua_rawgeti(L, LUA_REGISTRYINDEX, LUA_RIDX_MAINTHREAD);
    lua_State *main = lua_tothread(L, -1);
    lua_pop(L, 1);
    return main;
#else
    int is_main = lua_pushthread(L);
    lua_pop(L, 1);
    return is_main ? L : NULL;
#endif
}

#if LUA_VERSION_NUM >= 505
/* The main thread lies at the end of the global state, to which a word of it points. */
void *hkl_last_block(lua_State *main)
{
    enum { GLOBAL_AT = 3, GLOBAL_MOST = 8 << 10 };
    char *global = ((char **)(void *)main)[GLOBAL_AT];
    const uintptr_t before = (uintptr_t)main - (uintptr_t)global;
    return before > 0 && before < GLOBAL_MOST ? global : NULL;
}
#else
void *hkl_last_block(lua_State *main)
{
    return (char *)main - LUA_EXTRASPACE;
}
#endif

hkl_state *hkl_state_new(hak_ctx *ctx, lua_State *main)
{
    hkl_state *st = hak_calloc(ctx, 1, sizeof *st);
    if (!st) return NULL;
    st->ctx = ctx;
    st->main = main;
    st->until_check = INT64_MAX;
    st->shared = hak_ctx_thread(ctx) != ctx;
    st->thread = hkl_thread_now();
    hkl_newstate_learn();
    if (main) st->last = hkl_last_block(main);
    return st;
}

/* The state that came first may be one whose allocator the host wraps. */
void hkl_install(hkl_state *st, lua_State *L)
{
    lua_setallocf(L, hkl_alloc_for(st), st);
    if (!st->shared && st->main && hkl_state_of(st->main) == st)
        lua_setallocf(st->main, hkl_alloc_for(st), st);
}

hkl_state *hkl_state_attach(lua_State *L)
{
    hkl_state *st = hkl_state_of(L);
    hak_ctx *ctx = hak_lua_context(L);
    if (st || !ctx) return st;
    lua_State *main = hkl_main_thread(L);
    if (!main) return NULL;
    st = hkl_state_new(ctx, main);
    if (st) lua_setallocf(L, hkl_alloc_for(st), st);
    return st;
}

int hkl_panic(lua_State *L)
{
    const char *message = lua_tostring(L, -1);
    fprintf(stderr, "PANIC: unprotected error in call to Lua API (%s)\n",
            message ? message : "error object is not a string");
    return 0; /* Lua aborts */
}

#if LUA_VERSION_NUM >= 504
/* As in the standard library, where warnings are off until "@on" in 5.4, and on until "@off" in 5.5. A
 * message may come in pieces; while warnings are off, the last piece alone is looked at, as there. */
static void warn(void *ud, const char *message, int to_continue)
{
    hkl_state *st = ud;
    if (!st->warn_continues && !to_continue && message[0] == '@') {
        if (strcmp(message, "@on") == 0) st->warn_on = true;
        else if (strcmp(message, "@off") == 0) st->warn_on = false;
        return;
    }
    if (!st->warn_on) return;
    fprintf(stderr, "%s%s%s", st->warn_continues ? "" : "Lua warning: ", message, to_continue ? "" : "\n");
    st->warn_continues = to_continue != 0;
}
#endif

static bool is_debugged(const hak_options *options)
{
    hak_options o = HAK_OPTIONS_INIT;
    return options && hak_sized_copy(&o, sizeof o, options) && o.debug != 0;
}

/* A Lua state for a context with its hkl_state; NULL leaves both as they are. */
static lua_State *open_state(hkl_state *st, const hak_options *options)
{
    lua_State *L = HKL_NEW_STATE(hkl_alloc_for(st), st);
    if (!L) return NULL;
    st->main = L;
    st->last = hkl_last_block(L);
    st->owns_ctx = true;
    lua_atpanic(L, hkl_panic);
#if LUA_VERSION_NUM >= 504
    if (LUA_VERSION_NUM >= 505) st->warn_on = true;
    lua_setwarnf(L, warn, st);
#endif
    if (!st->shared && !is_debugged(options)) hkl_end_prepare(L);
    return L;
}

hak_ctx *hkl_context_new(hak_space *space, const hak_options *options)
{
    hak_options o = HAK_OPTIONS_INIT;
    if (options && !hak_sized_copy(&o, sizeof o, options)) return NULL;
    hak_tuning t = HAK_TUNING_INIT;
    if (!o.tuning || hak_sized_copy(&t, sizeof t, o.tuning)) {
        if (t.magazine_most == 0 && (o.mode == HAK_MODE_BALANCED || o.mode >= HAK_MODE_LEARNING))
            t.magazine_most = HKL_KEPT_MOST;
        o.tuning = &t;
    }
    return hak_ctx_new(space, &o);
}

lua_State *hak_lua_newstate_in(hak_space *space, const hak_options *options)
{
    hak_ctx *ctx = hkl_context_new(space, options);
    hkl_state *st = ctx ? hkl_state_new(ctx, NULL) : NULL;
    lua_State *L = st ? open_state(st, options) : NULL;
    if (!L) hak_ctx_destroy(ctx);
    return L;
}

lua_State *hak_lua_newstate(const hak_options *options)
{
    return hak_lua_newstate_in(NULL, options);
}

lua_State *hak_lua_newstate_labelled(hak_space *space, const hak_options *options)
{
    hak_ctx *ctx = hkl_context_new(space, options);
    hkl_labels *labels = ctx ? hkl_labels_new(ctx) : NULL;
    hkl_state *st = labels ? hkl_state_new(ctx, NULL) : NULL;
    lua_State *L = NULL;
    if (st) {
        st->labels = labels;
        st->labelled = true;
        const hak_label own = hkl_labels_registry(labels);
        st = hak_realloc_sized_cs(ctx, st, sizeof *st, sizeof *st, own, 0); /* no shrink, no failure */
        const hkl_scope_of before = hkl_scope_begin(st, own);
        L = open_state(st, options);
        hkl_scope_end(st, before);
    }
    if (!L) {
        if (labels) hkl_labels_delete(labels);
        hak_ctx_destroy(ctx);
    }
    return L;
}

int hak_lua_lessons(const char *folder)
{
    return hkl_lesson_folder(folder) ? 0 : -1;
}

int hak_lua_labels(lua_State *L, bool on)
{
    hkl_state *st = on ? hkl_state_attach(L) : hkl_state_of(L);
    if (!st) return on || !hak_lua_context(L) ? -1 : 0;
    if (hkl_switch_labels(st, on) != 0) return -1;
    hkl_install(st, L);
    return 0;
}

size_t hak_lua_trim(lua_State *L)
{
    hak_ctx *ctx = hak_lua_context(L);
    if (!ctx) return 0;
    lua_gc(L, LUA_GCCOLLECT, 0);
    return hak_ctx_trim(ctx);
}

int hak_lua_close(lua_State *L)
{
    if (hak_lua_limit(L, 0, 0) != 0) return -1;
    lua_close(L);
    return 0;
}

int hak_lua_drop(lua_State *L)
{
    hkl_state *st = hkl_state_of(L);
    hak_ctx *ctx = hak_lua_context(L);
    if (!ctx || (st && (st->old_alloc || hkl_has_others(st)))) return -1;
#ifdef HKL_LUAJIT
    luaJIT_setmode(L, 0,
                   LUAJIT_MODE_ENGINE | LUAJIT_MODE_FLUSH); /* machine code is mapped outside the context */
#endif
    if (st && st->labels) hkl_labels_delete(st->labels);
    if (st) hkl_profile_delete(st->profile);
    hak_ctx_destroy(ctx);
    return 0;
}

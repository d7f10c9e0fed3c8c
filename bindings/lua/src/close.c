#include "close.h"

#include "cfi.h"
#include "lesson/lesson.h"
#include "profile/trace.h"
#include "readable.h"
#include "setmode.h"

#include <lauxlib.h>

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum {
    ROOM = 16 << 20,       /* what closing may take beyond twice the limit */
    STACK_SLAB = 80 << 10, /* units of the largest slab, and one for its data */
    FRAMES_MOST = 4096,
    LESSONS = 2,      /* lua_close calls finalizers, and from 5.4 on methods __close, from different places */
    STACK_WORDS = 12, /* lua_State.stack is among the first of these */
    /* the part of lua_State with allowhook, or all of it; that of 5.5 ends with the block */
    HEAD = LUA_VERSION_NUM >= 504  ? 64
           : LUA_VERSION_NUM > 501 ? 208
                                   : 128
};

/* ---- Whether a finalizer runs --------------------------------------------------------------------- */

/* Whether the runtime is LuaJIT: one library serves it and 5.1. */
#if LUA_VERSION_NUM == 501
#define IS_LUAJIT (luaJIT_setmode != NULL)
#else
#define IS_LUAJIT false
#endif

/* lua_State.allowhook of PUC Lua: the byte that is 0 in finalizers and hooks, and else 1; 0 = not known. */
static size_t allows_at;

/* The byte that was 1 before, in a function and in none, and is 0 now. */
static void learn_allows(const lua_State *main, const uint8_t *none, const uint8_t *function)
{
    const uint8_t *now = (const uint8_t *)main;
    size_t found = 0, count = 0;
    for (size_t i = 1; i < HEAD && !IS_LUAJIT; i++) {
        if (none[i] != 1 || function[i] != 1 || now[i] != 0) continue;
        found = i;
        count++;
    }
    allows_at = count == 1 ? found : 0;
}

bool hkl_finalizes(const hkl_state *st)
{
    if (hkl_trace_finalizes(st->main)) return true;
    return allows_at != 0 && ((const uint8_t *)st->main)[allows_at] == 0;
}

/* false = lua_close runs no code of the program's now, as far as that is seen without a look at the stack.
 * From 5.4 on it also runs methods __close. */
static bool may_be_closing(const hkl_state *st)
{
    const bool knows = IS_LUAJIT ? hkl_trace_layout_now.hooks_at != 0 : allows_at != 0;
    return LUA_VERSION_NUM >= 504 || !knows || hkl_finalizes(st);
}

/* ---- Frames of lua_close -------------------------------------------------------------------------- */

/* By a pointer: the compiler is not to make lua_close a part of this function. Nothing here keeps L in a
 * register while lua_close runs. */
__attribute__((noinline)) static void close_state(lua_State *volatile *L)
{
    void (*volatile const close)(lua_State *) = lua_close;
    close(*L);
    *L = NULL;
}

#ifdef HKC_CFI_WALK

/* The place in lua_close, or in the function to which lua_close jumps, from which the finalizers are called;
 * and where the main thread is kept meanwhile: in a register, or HKC_CFI_SAVED + n = in the frame's word n.
 */
typedef struct lesson {
    uintptr_t pc;
    size_t thread_at;
} lesson;

static lesson lessons[LESSONS];
static size_t lesson_count;

/* Goes up one frame. false = there is no way up that can be trusted. */
static bool climb(hkc_cfi_registers *at)
{
    enum { PAGE_SHIFT = 12 };
    hkc_cfi_saves saves;
    if (!hkc_cfi_saves_at(at->pc, &saves)) return false;
    const uintptr_t cfa = (saves.cfa_from_fp ? at->saved[HKC_CFI_FP] : at->sp) + saves.cfa_offset;
    if (cfa <= at->sp || cfa % sizeof(uintptr_t) != 0) return false;
    for (int r = 0; r < HKC_CFI_SAVED; r++)
        if (saves.below[r] > cfa - at->sp) return false;
    if (hkc_cfi_ra_below(&saves) > cfa - at->sp) return false;
    const uintptr_t last = cfa - sizeof(uintptr_t);
    if (last >> PAGE_SHIFT != at->sp >> PAGE_SHIFT && !hkc_readable((const void *)last, sizeof(uintptr_t)))
        return false;
    hkc_cfi_climb(at, &saves);
    return true;
}

static uintptr_t word_at(const hkc_cfi_registers *frame, size_t place)
{
    if (place < HKC_CFI_SAVED) return frame->saved[place];
    return ((const uintptr_t *)frame->sp)[place - HKC_CFI_SAVED];
}

static bool is_closing(const lua_State *main)
{
    hkc_cfi_registers at;
    hkc_cfi_here(&at);
    for (int n = 0; lesson_count != 0 && n < FRAMES_MOST && climb(&at); n++) {
        for (size_t i = 0; i < lesson_count; i++)
            if (at.pc == lessons[i].pc && word_at(&at, lessons[i].thread_at) == (uintptr_t)main) return true;
    }
    return false;
}

/* A place of a frame with the main thread; -1 = none. */
static int place_of(const hkc_cfi_registers *frame, uintptr_t end, const lua_State *main)
{
    const size_t places = HKC_CFI_SAVED + (end - frame->sp) / sizeof(uintptr_t);
    for (size_t i = 0; i < places; i++)
        if (word_at(frame, i) == (uintptr_t)main) return (int)i;
    return -1;
}

static void note_caller(lua_State *main)
{
    hkc_cfi_registers at, below;
    hkc_cfi_here(&at);
    for (int n = 0; n < FRAMES_MOST; n++) {
        below = at;
        if (!climb(&at)) return;
        if (hkc_cfi_function(at.pc) == (uintptr_t)close_state) break;
    }
    const int place = hkc_cfi_function(at.pc) == (uintptr_t)close_state ? place_of(&below, at.sp, main) : -1;
    if (place < 0 || lesson_count == LESSONS) return;
    lessons[lesson_count++] = (lesson){below.pc, (size_t)place};
}

#else

static bool is_closing(const lua_State *main)
{
    (void)main;
    return false;
}

static void note_caller(lua_State *main)
{
    (void)main;
}

#endif

/* ---- The stack of the main thread, where errors stay on it ---------------------------------------- */

/* The word of lua_State with the address of its stack; 0 = not known, or not needed. */
static size_t stack_word;

typedef struct scratch {
    lua_State *volatile main;
    bool grows;
    uint8_t outside[2][HEAD]; /* of lua_State while no finalizer runs: in no function, and in one */
} scratch;

static void *scratch_alloc(void *ud, void *ptr, size_t osize, size_t nsize)
{
    scratch *s = ud;
    (void)osize;
    if (nsize == 0) {
        free(ptr);
        return NULL;
    }
    if (s->grows && ptr) {
        void *const *words = (void *const *)(const void *)s->main;
        for (size_t i = 1; i < STACK_WORDS; i++)
            if (words[i] == ptr) stack_word = i;
    }
    return realloc(ptr, nsize);
}

static bool is_stack(const hkl_state *st, const void *ptr)
{
    return ptr && stack_word != 0 && ((void *const *)(const void *)st->main)[stack_word] == ptr;
}

/* ---- The scratch state ---------------------------------------------------------------------------- */

static int note_close(lua_State *L)
{
    scratch *s = lua_touserdata(L, lua_upvalueindex(1));
    note_caller(s->main);
    return 0;
}

static int note_finalizer(lua_State *L)
{
    scratch *s = lua_touserdata(L, lua_upvalueindex(1));
    learn_allows(s->main, s->outside[0], s->outside[1]);
    return note_close(L);
}

static void set_method(lua_State *L, const char *name, lua_CFunction function, scratch *s)
{
    lua_pushlightuserdata(L, s);
    lua_pushcclosure(L, function, 1);
    lua_setfield(L, -2, name);
}

/* Two objects: one to be finalized, and one to be closed. */
static int make_objects(lua_State *L)
{
    scratch *s = lua_touserdata(L, 1);
    lua_settop(L, 0);
    memcpy(s->outside[1], s->main, HEAD);
    lua_newuserdata(L, 8);
    lua_createtable(L, 0, 1);
    set_method(L, "__gc", note_finalizer, s);
    lua_setmetatable(L, -2);
    lua_newuserdata(L, 8);
    lua_createtable(L, 0, 1);
    set_method(L, "__close", note_close, s);
    lua_setmetatable(L, -2);
    return 2;
}

static void learn(void)
{
    scratch s = {.main = NULL};
    s.main = HKL_NEW_STATE(scratch_alloc, &s);
    if (!s.main) return;
    lua_atpanic(s.main, hkl_panic);
    memcpy(s.outside[0], s.main, HEAD);
    lua_pushcfunction(s.main, make_objects);
    lua_pushlightuserdata(s.main, &s);
    if (lua_pcall(s.main, 1, 2, 0) == 0) {
#if LUA_VERSION_NUM >= 504
        lua_toclose(s.main, -1);
#elif LUA_VERSION_NUM >= 502
        s.grows = true;
        lua_checkstack(s.main, 1000);
        s.grows = false;
#endif
    }
    close_state(&s.main);
}

static void lesson_words(hkl_lesson *kept)
{
    size_t allows = hkl_lesson_count(kept, allows_at, HEAD - 1);
    size_t stack = hkl_lesson_count(kept, stack_word, STACK_WORDS - 1);
#ifdef HKC_CFI_WALK
    lesson_count = hkl_lesson_count(kept, lesson_count, LESSONS);
    for (size_t i = 0; i < lesson_count; i++) {
        lessons[i].pc = hkl_lesson_address(kept, lessons[i].pc);
        lessons[i].thread_at = hkl_lesson_count(kept, lessons[i].thread_at, FRAMES_MOST);
    }
    if (kept->broken && !kept->gives) lesson_count = 0;
#endif
    allows_at = kept->broken ? 0 : allows;
    stack_word = kept->broken ? 0 : stack;
}

/* All of it, or there is nothing to keep. */
static bool is_learnt(void)
{
#ifdef HKC_CFI_WALK
    return lesson_count == (LUA_VERSION_NUM >= 504 ? LESSONS : 1) && (IS_LUAJIT || allows_at != 0);
#else
    return false;
#endif
}

static void learn_once(void)
{
    if (hkl_lesson_take(HKL_LESSON_CLOSE, lesson_words)) return;
    learn();
    if (is_learnt()) hkl_lesson_keep(HKL_LESSON_CLOSE, lesson_words);
}

void hkl_close_learn(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, learn_once);
}

/* ---- Limits ---------------------------------------------------------------------------------------- */

static void *again(hkl_state *st, void *ptr, size_t osize, size_t nsize, hak_label label, hak_site site)
{
    if (!ptr || hkl_is_foreign(st, ptr)) return hak_alloc_cs(st->ctx, nsize, label, site);
    return hak_realloc_sized_cs(st->ctx, ptr, osize, nsize, label, site);
}

/* Sets the hard limit of the context alone. */
static void set_hard(const hkl_state *st, const hak_stats *s, size_t hard)
{
    void *user;
    hak_pressure_fn *const fn = hak_limit_callback(st->ctx, &user); /* the host's, perhaps */
    hak_limit(st->ctx, s->soft_limit, hard, fn, user);
}

/* Errors of finalizers fill the stack, and one that does not grow is written beyond. Lua lets the stack have
 * a million values at most. */
static void *grown_stack(hkl_state *st, const hak_stats *s, void *ptr, size_t osize, size_t nsize,
                         hak_label label, hak_site site)
{
    const size_t now = s->committed_bytes > st->hard ? s->committed_bytes : st->hard;
    set_hard(st, s, now + nsize + STACK_SLAB);
    void *p = again(st, ptr, osize, nsize, label, site);
    set_hard(st, s, st->hard);
    return p;
}

void *hkl_close_block(hkl_state *st, void *ptr, size_t osize, size_t nsize, hak_label label, hak_site site)
{
    hak_stats s = {.size = sizeof s};
    if (st->hard == 0 || st->shared || hak_ctx_stats(st->ctx, &s) != 0) return NULL;
    if (s.hard_limit != st->hard) return NULL; /* it is the host's */
    if (!st->closing) {
        if (!may_be_closing(st) || !is_closing(st->main)) return NULL;
        st->closing = true;
        const size_t most = s.committed_bytes > st->hard ? s.committed_bytes : st->hard;
        st->hard = most > (SIZE_MAX - ROOM) / 2 ? SIZE_MAX : 2 * most + ROOM;
        set_hard(st, &s, st->hard);
        void *p = again(st, ptr, osize, nsize, label, site);
        if (p) return p;
    }
    return is_stack(st, ptr) ? grown_stack(st, &s, ptr, osize, nsize, label, site) : NULL;
}

#include "profile/thread.h"

#ifdef HKC_CFI_WALK

#include "lesson/lesson.h"
#include "profile/key.h"
#include "profile/learn.h"
#include "profile/pc.h"
#include "profile/trace.h"

#include <lauxlib.h>
#include <lualib.h>

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_CALLS = 24, UNWIND_MOST = 24 };

/* A place from which the runtime calls lua_Alloc to allocate. */
typedef struct call_site {
    uintptr_t pc, function;
    hkc_cfi_mask registers; /* of those that had the running thread every time */
} call_site;

/* Written while learning, which is over before anything else looks. */
static call_site calls[MAX_CALLS];
static int call_count;
static bool learnt;
hkl_thread_layout hkl_thread_layout_now;

#if LUA_VERSION_NUM == 501
static const hkl_thread_layout layout_luajit = {9, 6, 16, 0, true};
static const hkl_thread_layout layout_puc = {8, LUA_TTHREAD, 32, 0, false};
#else
static const hkl_thread_layout layout_puc = {8, LUA_TTHREAD, 24, 48, false};
#endif

/* ---- Learning --------------------------------------------------------------------------------------- */

/* Returns the slot that has pc, or the first free one of eight, or else its home, which is overwritten. With one slot
 * for each, two addresses that are in use and have the same one would be learnt anew at each allocation. */
static struct hkl_walk_step *place(hkl_walk *walk, uintptr_t pc)
{
    const size_t home = hkl_thread_home(pc);
    for (size_t i = 0; i < HKL_WALK_PROBES; i++) {
        struct hkl_walk_step *step = &walk->steps[(home + i) % HKL_WALK_SLOTS];
        if (step->pc == pc || step->pc == 0) return step;
    }
    return &walk->steps[home];
}

const struct hkl_walk_step *hkl_thread_rule(hkl_walk *walk, uintptr_t pc)
{
    struct hkl_walk_step *step = place(walk, pc);
    if (step->pc != pc) {
        step->pc = pc;
        step->site = step->thread = step->instruction = -1;
        step->ok = hkc_cfi_saves_at(pc, &step->saves);
    }
    return step;
}

typedef struct scratch {
    hkl_walk rules; /* met so far: without sites, which are not learnt yet */
    hkl_learner learner;
    lua_State *main;
    bool wrong; /* a thread did not look as the layout says */
} scratch;

static void observe(scratch *s, const hkc_cfi_registers *at)
{
    const lua_State *L = s->learner.running;
    if (!hkl_thread_looks(L, hkl_thread_word(s->main, hkl_thread_layout_now.global_at))) s->wrong = true;
#if LUA_VERSION_NUM >= 505
    else if (!hkl_key_placed(s->learner.running)) s->wrong = true;
#endif
    hkc_cfi_mask seen = 0;
    for (int r = 0; r < HKC_CFI_SAVED; r++)
        if (at->saved[r] == (uintptr_t)L) seen = (hkc_cfi_mask)(seen | 1 << r);
    int i = 0;
    while (i < call_count && calls[i].pc != at->pc)
        i++;
    if (i < call_count) calls[i].registers &= seen;
    else if (call_count < MAX_CALLS)
        calls[call_count++] = (call_site){at->pc, hkc_cfi_function(at->pc), seen};
}

/* Blocks are of malloc, which on this platform gives what the runtimes can use. */
static void *scratch_alloc(void *ud, void *ptr, size_t osize, size_t nsize)
{
    scratch *s = ud;
    if (nsize == 0) {
        free(ptr);
        return NULL;
    }
    (void)osize;
    if (s->learner.running) {
        hkc_cfi_registers at;
        hkc_cfi_here(&at);
        const struct hkl_walk_step *step = hkl_thread_rule(&s->rules, at.pc);
        if (step->ok) {
            hkc_cfi_climb(&at, &step->saves);
            observe(s, &at);
            if (s->learner.stepping && !s->wrong && !hkl_key_moves(s->learner.running)) {
                if (s->learner.hooks) hkl_pc_see(&s->rules, s->learner.running, &at);
                hkl_key_see(s->learner.running);
            }
        }
        if (s->learner.refuse) {
            s->learner.refuse = false;
            return NULL;
        }
    }
    return realloc(ptr, nsize);
}

static const hkl_thread_layout *layout_of(lua_State *L)
{
#if LUA_VERSION_NUM == 501
    /* LuaJIT has its version in its registry of libraries; 5.1 knows no such global after luaL_openlibs */
    lua_getglobal(L, "jit");
    const bool luajit = lua_istable(L, -1);
    lua_pop(L, 1);
    return luajit ? &layout_luajit : &layout_puc;
#else
    (void)L;
    return &layout_puc;
#endif
}

/* 5.4.0 has one more word before it. The first call of a thread has its function there. */
static void find_stack(lua_State *L)
{
#if LUA_VERSION_NUM == 504
    lua_Debug ar;
    if (!lua_getstack(L, 0, &ar)) return;
    const void *call = ar.i_ci, *below;
    while ((below = hkl_key_pointer(call, HKL_CALL_BELOW)) != NULL)
        call = below;
    if (hkl_thread_word(call, HKL_CALL_FUNCTION) != hkl_thread_word(L, hkl_thread_layout_now.stack_at))
        hkl_thread_layout_now.stack_at += sizeof(void *);
#else
    (void)L;
#endif
}

static int run(lua_State *L)
{
    scratch *s = lua_touserdata(L, 1);
    luaL_openlibs(L);
    hkl_thread_layout_now = *layout_of(L);
    find_stack(L);
    s->learner.hooks = hkl_key_in_register();
    lua_pushcfunction(L, hkl_learn_run);
    lua_pushlightuserdata(L, &s->learner);
    lua_call(L, 1, 0);
    return 0;
}

/* LuaJIT ends the process when machine code cannot be protected, and what runs at exit asks again. */
static _Thread_local bool learning;

static void learn(void)
{
    static scratch s; /* large, and used once */
    lua_State *L = HKL_NEW_STATE(scratch_alloc, &s);
    if (!L) return;
    lua_atpanic(L, hkl_panic);
    s.main = L;
    lua_pushcfunction(L, run);
    lua_pushlightuserdata(L, &s);
    const bool ok = lua_pcall(L, 1, 0, 0) == 0;
    s.learner.running = NULL;
    lua_close(L);
    hkl_pc_learnt();
    if (hkl_thread_layout_now.luajit) hkl_trace_learn();
    learnt = ok && !s.wrong && call_count > 0 && call_count < MAX_CALLS;
    if (!learnt) call_count = 0; /* no thread is found, then */
}

static void lesson_words(hkl_lesson *lesson)
{
    hkl_thread_layout *layout = &hkl_thread_layout_now;
    layout->type_at = (uint8_t)hkl_lesson_word(lesson, layout->type_at);
    layout->type = (uint8_t)hkl_lesson_word(lesson, layout->type);
    layout->global_at = (uint8_t)hkl_lesson_word(lesson, layout->global_at);
    layout->stack_at = (uint8_t)hkl_lesson_word(lesson, layout->stack_at);
    layout->luajit = hkl_lesson_word(lesson, layout->luajit) != 0;
    call_count = (int)hkl_lesson_count(lesson, (size_t)call_count, MAX_CALLS);
    for (int i = 0; i < call_count; i++) {
        calls[i].pc = hkl_lesson_address(lesson, calls[i].pc);
        calls[i].function = hkl_lesson_address(lesson, calls[i].function);
        calls[i].registers = (hkc_cfi_mask)hkl_lesson_word(lesson, calls[i].registers);
    }
    hkl_pc_lesson(lesson);
    hkl_key_lesson(lesson);
    if (call_count == 0) lesson->broken = true;
    if (!lesson->gives && lesson->broken) call_count = 0;
}

static void learn_once(void)
{
    learning = true;
    learnt = hkl_lesson_take(HKL_LESSON_THREADS, lesson_words);
    if (learnt) {
        if (hkl_thread_layout_now.luajit) hkl_trace_learn();
    } else {
        learn();
        if (learnt) hkl_lesson_keep(HKL_LESSON_THREADS, lesson_words);
    }
    learning = false;
}

bool hkl_thread_learn(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    if (!learning) pthread_once(&once, learn_once);
    return learnt;
}

bool hkl_thread_luajit(void)
{
    return hkl_thread_learn() && hkl_thread_layout_now.luajit;
}

/* ---- Looking ---------------------------------------------------------------------------------------- */

/* Of a place that was not met while learning: another one of the same function does. */
static int site_of(uintptr_t pc)
{
    for (int i = 0; i < call_count; i++)
        if (calls[i].pc == pc) return i;
    const uintptr_t function = hkc_cfi_function(pc);
    for (int i = 0; i < call_count && function != 0; i++)
        if (calls[i].function == function) return i;
    return -1;
}

/* Where it was learnt, and is one. */
static int only_register(const call_site *call, uintptr_t pc)
{
    const bool one = call->pc == pc && call->registers != 0 && (call->registers & (call->registers - 1)) == 0;
    return one ? __builtin_ctz(call->registers) : -1;
}

const struct hkl_walk_step *hkl_thread_step_far(hkl_walk *walk, uintptr_t pc)
{
    static const struct hkl_walk_step nowhere = {.site = -1, .thread = -1, .instruction = -1};
    if (pc == 0) return &nowhere; /* behind the last frame of a stack */
    struct hkl_walk_step *step = place(walk, pc);
    if (step->pc == pc) return step;
    step->pc = pc;
    step->site = (int8_t)site_of(pc);
    step->thread = (int8_t)(step->site >= 0 ? only_register(&calls[step->site], pc) : -1);
    step->instruction = (int8_t)hkl_pc_register(pc);
    step->ok = hkc_cfi_saves_at(pc, &step->saves);
    return step;
}

bool hkl_thread_unwind(hkl_walk *walk, hkc_cfi_registers *at)
{
    for (int i = 0; i < UNWIND_MOST; i++) {
        const struct hkl_walk_step *step = hkl_thread_step(walk, at->pc);
        if (step->site >= 0) return true;
        if (!step->ok) return false;
        hkc_cfi_climb(at, &step->saves);
    }
    return false;
}

/* A place that was learnt is believed where it has a single register; anything else has to lie in the
 * context. */
static lua_State *accept(const hkl_state *st, uintptr_t value, bool sure)
{
    lua_State *L = (lua_State *)value;
    if (L == st->main) return L;
    if (!sure && !hak_owns(st->ctx, L)) return NULL;
    return hkl_thread_is(st, L) ? L : NULL;
}

lua_State *hkl_thread_at(hkl_walk *walk, const hkl_state *st, const hkc_cfi_registers *at)
{
    const struct hkl_walk_step *step = hkl_thread_step(walk, at->pc);
    if (!st->main || step->site < 0) return NULL;
    if (step->thread >= 0) return accept(st, at->saved[step->thread], true);
    const call_site *call = &calls[step->site];
    lua_State *found = NULL;
    for (int r = 0; r < HKC_CFI_SAVED; r++) {
        if ((call->registers >> r & 1) == 0 && call->pc == at->pc) continue;
        lua_State *L = accept(st, at->saved[r], false);
        if (!L || L == found) continue;
        if (found) return NULL; /* two: either may be it */
        found = L;
    }
    return found;
}

#else

bool hkl_thread_learn(void)
{
    return false;
}

bool hkl_thread_luajit(void)
{
    return false;
}

#endif

#include "profile/trace.h"

#include "lesson/lesson.h"
#include "profile/snap.h"
#include "setmode.h"
#include "state.h"

#include <lauxlib.h>
#include <lualib.h>

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

hkl_trace_layout hkl_trace_layout_now;

#if LUA_VERSION_NUM == 501

enum { GLOBAL_AT = 16, BASE_AT = 32, TOP_AT = 40, FRAME_BYTES = 16, SLOT_BYTES = 8 };
enum { LOOPS = 3, TURNS = 60, WORDS = 256 };

typedef struct lesson {
    const char *end;    /* of the first block, which has the thread, what all share and the compiler */
    const char *global; /* NULL = nothing to see now */
    uintptr_t base;     /* where the trace's frame will be */
    uint16_t jit_base_at;
    bool compiled;
    uint16_t on[WORDS], off[WORDS]; /* how often a word was `base` */
    int32_t number[WORDS * 2];      /* last value on a trace; -1 = it cannot be it */
} lesson;

static uintptr_t word_at(const char *at, size_t offset)
{
    uintptr_t word;
    memcpy(&word, at + offset, sizeof word);
    return word;
}

static int32_t number_at(const char *at, size_t offset)
{
    int32_t number;
    memcpy(&number, at + offset, sizeof number);
    return number;
}

static void see(lesson *s)
{
    if (!s->global) return;
    const bool on = s->jit_base_at != 0 && word_at(s->global, s->jit_base_at) == s->base;
    for (int i = 0; i < WORDS; i++) {
        const bool is = word_at(s->global, (size_t)i * sizeof(uintptr_t)) == s->base;
        uint16_t *count = s->compiled ? &s->on[i] : &s->off[i];
        if (is && *count < UINT16_MAX) (*count)++;
    }
    for (int i = 0; s->jit_base_at != 0 && i < WORDS * 2; i++) {
        const int32_t now = number_at(s->global, (size_t)i * sizeof now), before = s->number[i];
        if (on && before >= 0 && now > 0 && (before == 0 || before == now)) s->number[i] = now;
        else if (on || now >= 0) s->number[i] = -1;
    }
}

/* Calls a new function with a loop that allocates, TURNS times. */
static void run_loop(lua_State *L, lesson *s)
{
    static const char loop[] = "local keep = {0} return function(n) for i = 1, n do keep[1] = {i} end end";
    if (luaL_loadstring(L, loop) != 0) lua_error(L);
    lua_call(L, 0, 1);
    const char *thread = (const char *)L;
    s->global = (const char *)word_at(thread, GLOBAL_AT);
    s->base = word_at(thread, TOP_AT) - SLOT_BYTES + FRAME_BYTES;
    lua_pushinteger(L, TURNS);
    lua_call(L, 1, 0);
    s->global = NULL;
}

static void switch_compiler(lua_State *L, lesson *s, bool on)
{
    if (luaL_loadstring(L, on ? "jit.on() jit.flush() jit.opt.start('hotloop=2')" : "jit.off()") != 0)
        lua_error(L);
    lua_call(L, 0, 0);
    s->compiled = on;
}

/* The one word that was the frame on traces and never else; 0 = none, or more. */
static uint16_t find_jit_base(const lesson *s)
{
    uint16_t found = 0;
    for (int i = 1; i < WORDS; i++) {
        if (s->on[i] < LOOPS * TURNS / 2 || s->off[i] != 0) continue;
        if (found != 0) return 0;
        found = (uint16_t)(i * (int)sizeof(uintptr_t));
    }
    return found;
}

/* The one number that was below 0 off traces, and another one in each loop. */
static uint16_t find_number(lua_State *L, lesson *s)
{
    uint8_t loops[WORDS * 2] = {0};
    int32_t last[WORDS * 2] = {0};
    for (int loop = 0; loop < LOOPS; loop++) {
        memset(s->number, 0, sizeof s->number);
        run_loop(L, s);
        for (int i = 0; i < WORDS * 2; i++) {
            if (s->number[i] > last[i]) loops[i]++;
            last[i] = s->number[i];
        }
    }
    uint16_t found = 0;
    for (int i = 1; i < WORDS * 2; i++) {
        if (loops[i] != LOOPS) continue;
        if (found != 0) return 0;
        found = (uint16_t)(i * (int)sizeof(int32_t));
    }
    return found;
}

/* The word at `at` is this thread while a function of it runs: asked in the main thread, and in a
 * coroutine. */
static int is_running(lua_State *L)
{
    const char *global = (const char *)word_at((const char *)L, GLOBAL_AT);
    lua_pushboolean(L, word_at(global, (size_t)lua_tointeger(L, 1)) == (uintptr_t)L);
    return 1;
}

/* Before the frame of the trace; 0 = it is not. */
static uint16_t find_thread(lua_State *L, uint16_t jit_base_at)
{
    static const char asked[] = "local ask, at = ... return ask(at) and coroutine.wrap(ask)(at)";
    const uint16_t at = (uint16_t)(jit_base_at - sizeof(uintptr_t));
    if (luaL_loadstring(L, asked) != 0) lua_error(L);
    lua_pushcfunction(L, is_running);
    lua_pushinteger(L, at);
    lua_call(L, 2, 1);
    const bool is = lua_toboolean(L, -1);
    lua_pop(L, 1);
    return is ? at : 0;
}

/* The one byte that became 0xff when a handler was attached, and lost a bit with an event that has none: a
 * chunk that is loaded. 0 = none, or more. */
static uint16_t find_events(lua_State *L)
{
    enum { BYTES = WORDS * 8 };
    static const char attach[] = "jit.attach(function() end, 'hakmem')";
    static uint8_t before[BYTES], attached[BYTES];
    const uint8_t *global = (const uint8_t *)word_at((const char *)L, GLOBAL_AT);
    if (luaL_loadstring(L, attach) != 0) lua_error(L);
    memcpy(before, global, BYTES);
    lua_call(L, 0, 0);
    memcpy(attached, global, BYTES);
    if (luaL_loadstring(L, "") != 0) lua_error(L);
    lua_pop(L, 1);
    uint16_t found = 0;
    for (uint16_t i = 1; i < BYTES; i++) {
        if (before[i] == 0xff || attached[i] != 0xff || __builtin_popcount(global[i]) != 7) continue;
        if (found != 0) return 0;
        found = i;
    }
    return found;
}

/* Where the byte with the hooks may be; it is learnt by what it has in a finalizer. */
static uint16_t hooks_at;
static uint8_t hooks_in_finalizer;

static uint8_t hooks_now(lua_State *L)
{
    return ((const uint8_t *)word_at((const char *)L, GLOBAL_AT))[hooks_at];
}

void hkl_trace_garbage(lua_State *L, lua_CFunction finalizer)
{
    lua_newuserdata(L, 1);
    lua_newtable(L);
    lua_pushcfunction(L, finalizer);
    lua_setfield(L, -2, "__gc");
    lua_setmetatable(L, -2);
    lua_pop(L, 1);
}

static int finalize(lua_State *L)
{
    hooks_in_finalizer = hooks_now(L);
    return 0;
}

static void no_hook(lua_State *L, lua_Debug *ar)
{
    (void)L;
    (void)ar;
}

/* Two bytes before the events: the mask of hooks, with bits for what goes on above it; between them what the
 * interpreter does at each instruction. 0 = it is not so. */
static uint16_t find_hooks(lua_State *L, uint16_t events_at)
{
    enum { ACTIVE = 0x10, EVERY = 1 << 20, COMPILER_ON = 0x10 };
    if (events_at == 0) return 0;
    hooks_at = (uint16_t)(events_at - 2);
    const uint8_t before = hooks_now(L);
    const uint8_t mode = ((const uint8_t *)word_at((const char *)L, GLOBAL_AT))[hooks_at + 1];
    lua_sethook(L, no_hook, LUA_MASKCOUNT, EVERY);
    const uint8_t hooked = hooks_now(L);
    lua_sethook(L, NULL, 0, 0);
    hkl_trace_garbage(L, finalize);
    lua_gc(L, LUA_GCCOLLECT, 0);
    lua_gc(L, LUA_GCSTOP, 0);
    const bool is = before == 0 && mode == COMPILER_ON && hooked == LUA_MASKCOUNT && hooks_now(L) == 0 &&
                    hooks_in_finalizer == (HKL_TRACE_FINALIZES | ACTIVE);
    return is ? hooks_at : 0;
}

static int teach(lua_State *L)
{
    const char *thread = (const char *)L;
    lesson *s = lua_touserdata(L, 1);
    luaL_openlibs(L);
    lua_gc(L, LUA_GCSTOP, 0);
    lua_getglobal(L, "jit");
    if (!lua_istable(L, -1)) return 0; /* 5.1 */
    lua_settop(L, 1);
    if ((word_at(thread, TOP_AT) - word_at(thread, BASE_AT)) / SLOT_BYTES != (uintptr_t)lua_gettop(L))
        return 0;
    switch_compiler(L, s, false);
    for (int i = 0; i < LOOPS; i++)
        run_loop(L, s);
    switch_compiler(L, s, true);
    for (int i = 0; i < LOOPS; i++)
        run_loop(L, s);
    s->jit_base_at = find_jit_base(s);
    const uint16_t number = s->jit_base_at != 0 ? find_number(L, s) : 0;
    const uint16_t running = number != 0 ? find_thread(L, s->jit_base_at) : 0;
    if (running == 0) return 0;
    const uint16_t events = find_events(L), hooks = find_hooks(L, events);
    hkl_trace_layout_now = (hkl_trace_layout){.base_at = BASE_AT,
                                              .jit_base_at = s->jit_base_at,
                                              .number_at = number,
                                              .thread_at = running,
                                              .global_at = GLOBAL_AT,
                                              .events_at = events,
                                              .hooks_at = hooks};
#ifdef HKC_CFI_WALK
    hkl_snap_learn(L, s->end);
#endif
    return 0;
}

/* Blocks are of malloc, which on this platform gives what the runtimes can use. */
static void *scratch_alloc(void *ud, void *ptr, size_t osize, size_t nsize)
{
    lesson *s = ud;
    (void)osize;
    if (nsize == 0) {
        free(ptr);
        return NULL;
    }
    see(s);
#ifdef HKC_CFI_WALK
    hkl_snap_see(nsize);
#endif
    void *block = realloc(ptr, nsize);
    if (!s->end && block) s->end = (const char *)block + nsize;
    return block;
}

static void learn(void)
{
    static lesson s; /* large, and used once */
    lua_State *L = HKL_NEW_STATE(scratch_alloc, &s);
    if (!L) return;
    lua_atpanic(L, hkl_panic);
    lua_pushcfunction(L, teach);
    lua_pushlightuserdata(L, &s);
    lua_pcall(L, 1, 0, 0);
    s.global = NULL;
    lua_close(L);
}

static void lesson_words(hkl_lesson *kept)
{
    hkl_trace_layout l = hkl_trace_layout_now;
    uint16_t *const words[] = {&l.base_at,   &l.jit_base_at, &l.number_at, &l.thread_at,
                               &l.global_at, &l.events_at,   &l.hooks_at,  &l.traces_at};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        *words[i] = (uint16_t)hkl_lesson_word(kept, *words[i]);
    l.has_snapshots = hkl_lesson_word(kept, l.has_snapshots) != 0;
    l.object_constant = (uint8_t)hkl_lesson_word(kept, l.object_constant);
    uintptr_t *const called[] = {&l.new_table,    &l.copy_table,  &l.join,
                                 &l.integer_text, &l.number_text, &l.part};
    for (size_t i = 0; i < sizeof called / sizeof *called; i++)
        *called[i] = hkl_lesson_address(kept, *called[i]);
    if (!kept->broken) hkl_trace_layout_now = l;
}

static void learn_once(void)
{
    if (hkl_lesson_take(HKL_LESSON_TRACES, lesson_words)) return;
    learn();
    if (hkl_trace_layout_now.hooks_at != 0 || !luaJIT_setmode)
        hkl_lesson_keep(HKL_LESSON_TRACES, lesson_words);
}

void hkl_trace_learn(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, learn_once);
}

#else

void hkl_trace_learn(void)
{
}

#endif

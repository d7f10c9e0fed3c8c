#include "leave.h"

#include "lesson/lesson.h"
#include "profile/trace.h"
#include "setmode.h"

#include <lauxlib.h>

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

uint16_t hkl_leave_gc_at;

#if LUA_VERSION_NUM == 501

enum { GLOBAL_AT = 16, WORDS = 256 };

/* Places behind hkl_leave_gc_at, which are learnt as a whole or not at all: the bytes in use, the mark at which the
 * next step is taken, the state, objects whose finalizers are still to run, and the work of a step. */
enum { GC_USED = 0, GC_MARK = 8, GC_STATE = 17, GC_WAITING = 64, GC_SPEED = 88 };

/* ---- What the collector keeps of itself ----------------------------------------------------------------- */

static size_t word_at(const char *at, size_t offset)
{
    size_t word;
    memcpy(&word, at + offset, sizeof word);
    return word;
}

static int fail(lua_State *L)
{
    return lua_error(L);
}

static int collect_what_fails(lua_State *L)
{
    hkl_trace_garbage(L, fail);
    lua_gc(L, LUA_GCCOLLECT, 0);
    return 0;
}

static const char *gc_now;
static int waiting[2]; /* whether another one waits, in the first finalizer and in the second */
static int finalized;

static int see_waiting(lua_State *L)
{
    enum { FINALIZES = 5 /* GCSfinalize */ };
    (void)L;
    if (finalized < 2) waiting[finalized] = gc_now[GC_STATE] == FINALIZES && word_at(gc_now, GC_WAITING) != 0;
    finalized++;
    return 0;
}

static uint32_t speed_of(const char *gc)
{
    return (uint32_t)word_at(gc, GC_SPEED);
}

static bool has_speed(lua_State *L, const char *gc)
{
    enum { SPEED = 12345 };
    const int before = lua_gc(L, LUA_GCSETSTEPMUL, SPEED);
    const bool is = speed_of(gc) == SPEED;
    lua_gc(L, LUA_GCSETSTEPMUL, before);
    return is && speed_of(gc) == (uint32_t)before;
}

/* The mark of a collector that goes on is not as far. */
static const size_t STOPPED = (size_t)1 << 40;

/* A collector that goes on has its mark where the memory is, a stopped one where it never comes to. */
static bool has_mark(lua_State *L, const char *gc)
{
    lua_gc(L, LUA_GCRESTART, 0);
    const bool is = word_at(gc, GC_MARK) == word_at(gc, GC_USED);
    lua_gc(L, LUA_GCSTOP, 0);
    return is && word_at(gc, GC_MARK) >= STOPPED;
}

static bool sees_waiting(lua_State *L)
{
    hkl_trace_garbage(L, see_waiting);
    hkl_trace_garbage(L, see_waiting);
    finalized = 0;
    lua_gc(L, LUA_GCCOLLECT, 0);
    lua_gc(L, LUA_GCSTOP, 0);
    return finalized == 2 && waiting[0] && !waiting[1] && word_at(gc_now, GC_WAITING) == 0;
}

/* The bytes in use are what lua_gc tells; another word may be the same by chance. */
static void find(lua_State *L)
{
    const char *global = (const char *)word_at((const char *)L, GLOBAL_AT);
    for (size_t at = 0; at < WORDS * sizeof(size_t) && hkl_leave_gc_at == 0; at += sizeof(size_t)) {
        const size_t used = ((size_t)lua_gc(L, LUA_GCCOUNT, 0) << 10) + (size_t)lua_gc(L, LUA_GCCOUNTB, 0);
        gc_now = global + at;
        if (word_at(gc_now, GC_USED) == used && has_speed(L, gc_now) && has_mark(L, gc_now) &&
            sees_waiting(L))
            hkl_leave_gc_at = (uint16_t)at;
    }
}

static int teach(lua_State *L)
{
    lua_pushcfunction(L, collect_what_fails);
    const bool raises = lua_pcall(L, 0, 0, 0) != 0;
    lua_settop(L, 0);
    lua_gc(L, LUA_GCCOLLECT, 0);
    lua_gc(L, LUA_GCSTOP, 0);
    if (raises) find(L);
    return 0;
}

static void *scratch_alloc(void *ud, void *ptr, size_t osize, size_t nsize)
{
    (void)ud;
    (void)osize;
    if (nsize != 0) return realloc(ptr, nsize);
    free(ptr);
    return NULL;
}

static void lesson_words(hkl_lesson *kept)
{
    const uint32_t at = hkl_lesson_word(kept, hkl_leave_gc_at);
    if (!kept->broken) hkl_leave_gc_at = (uint16_t)at;
}

static void learn_once(void)
{
    /* without these nothing can be left to interpreted code */
    if (!luaJIT_setmode || hkl_trace_layout_now.hooks_at == 0) return;
    if (hkl_lesson_take(HKL_LESSON_LEAVE, lesson_words)) return;
    lua_State *L = HKL_NEW_STATE(scratch_alloc, NULL);
    if (!L) return;
    lua_atpanic(L, hkl_panic);
    const bool ran = lua_cpcall(L, teach, NULL) == 0;
    lua_close(L);
    if (ran) hkl_lesson_keep(HKL_LESSON_LEAVE, lesson_words);
}

void hkl_leave_learn(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, learn_once);
}

/* ---- Finalizers in interpreted code --------------------------------------------------------------------- */

static char key; /* in the registry: a function that need not be made when there is no memory */

static int run(lua_State *L)
{
    lua_gc(L, (int)lua_tointeger(L, 1), 0);
    return 0;
}

static int prepare(lua_State *L)
{
    lua_pushlightuserdata(L, &key);
    lua_pushcfunction(L, run);
    lua_rawset(L, LUA_REGISTRYINDEX);
    return 0;
}

bool hkl_leave_prepare(lua_State *L)
{
    if (hkl_leave_gc_at == 0 || lua_cpcall(L, prepare, NULL) == 0) return true;
    lua_pop(L, 1);
    return false;
}

static const char *gc_of(const lua_State *L)
{
    return (const char *)word_at((const char *)L, GLOBAL_AT) + hkl_leave_gc_at;
}

/* At the usual speed, a step that ends the marking gets no further than to a part of the strings, so that an
 * allocation sees that finalizers wait; a faster one may do all at once. */
bool hkl_leave_is_near(const lua_State *L, size_t bytes)
{
    enum { USUAL = 255 };
    const char *gc = gc_of(L);
    if (word_at(gc, GC_WAITING) != 0) return true;
    return speed_of(gc) > USUAL && word_at(gc, GC_USED) + bytes >= word_at(gc, GC_MARK);
}

/* LuaJIT notes what runs. It takes hooks for a part of what they interrupt, and lua_pcall leaves a note of C. */
static int32_t *noted(lua_State *L)
{
    return (int32_t *)(void *)((char *)(uintptr_t)hkl_trace_global(L) + hkl_trace_layout_now.number_at);
}

void hkl_leave_collect(lua_State *L, int what)
{
    const char *gc = gc_of(L);
    const int32_t runs = *noted(L);
    const bool stopped = word_at(gc, GC_MARK) >= STOPPED;
    bool failed = false;
    do {
        lua_pushlightuserdata(L, &key);
        lua_rawget(L, LUA_REGISTRYINDEX);
        lua_pushinteger(L, what);
        if (lua_pcall(L, 1, 0, 0) != 0) {
            if (failed) lua_pop(L, 1);
            failed = true;
        }
        what = LUA_GCSTEP;
    } while (word_at(gc, GC_WAITING) != 0);
    if (stopped) lua_gc(L, LUA_GCSTOP, 0);
    *noted(L) = runs;
    if (failed) lua_error(L);
}

#else

void hkl_leave_learn(void)
{
}

#endif

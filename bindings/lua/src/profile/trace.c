#include "profile/trace.h"

#include <lauxlib.h>

#include <string.h>

hkl_trace_layout hkl_trace_layout_now;

#if LUA_VERSION_NUM == 501

enum { GLOBAL_AT = 16, BASE_AT = 32, TOP_AT = 40, FRAME_BYTES = 16, SLOT_BYTES = 8, LOOPS = 3, TURNS = 60 };

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

void hkl_trace_see(hkl_trace_lesson *s)
{
    if (!s->global) return;
    const bool on = s->jit_base_at != 0 && word_at(s->global, s->jit_base_at) == s->base;
    for (int i = 0; i < HKL_LESSON_WORDS; i++) {
        const bool is = word_at(s->global, (size_t)i * sizeof(uintptr_t)) == s->base;
        uint16_t *count = s->compiled ? &s->on[i] : &s->off[i];
        if (is && *count < UINT16_MAX) (*count)++;
    }
    for (int i = 0; s->jit_base_at != 0 && i < HKL_LESSON_WORDS * 2; i++) {
        const int32_t now = number_at(s->global, (size_t)i * sizeof now), before = s->number[i];
        if (on && before >= 0 && now > 0 && (before == 0 || before == now)) s->number[i] = now;
        else if (on || now >= 0) s->number[i] = -1;
    }
}

/* Calls a new function with a loop that allocates, TURNS times. */
static void run_loop(lua_State *L, hkl_trace_lesson *s)
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

static void switch_compiler(lua_State *L, hkl_trace_lesson *s, bool on)
{
    if (luaL_loadstring(L, on ? "jit.on() jit.flush() jit.opt.start('hotloop=2')" : "jit.off()") != 0)
        lua_error(L);
    lua_call(L, 0, 0);
    s->compiled = on;
}

/* The one word that was the frame on traces and never else; 0 = none, or more. */
static uint16_t find_jit_base(const hkl_trace_lesson *s)
{
    uint16_t found = 0;
    for (int i = 1; i < HKL_LESSON_WORDS; i++) {
        if (s->on[i] < LOOPS * TURNS / 2 || s->off[i] != 0) continue;
        if (found != 0) return 0;
        found = (uint16_t)(i * (int)sizeof(uintptr_t));
    }
    return found;
}

/* The one number that was below 0 off traces, and another one in each loop. */
static uint16_t find_number(lua_State *L, hkl_trace_lesson *s)
{
    uint8_t loops[HKL_LESSON_WORDS * 2] = {0};
    int32_t last[HKL_LESSON_WORDS * 2] = {0};
    for (int loop = 0; loop < LOOPS; loop++) {
        memset(s->number, 0, sizeof s->number);
        run_loop(L, s);
        for (int i = 0; i < HKL_LESSON_WORDS * 2; i++) {
            if (s->number[i] > last[i]) loops[i]++;
            last[i] = s->number[i];
        }
    }
    uint16_t found = 0;
    for (int i = 1; i < HKL_LESSON_WORDS * 2; i++) {
        if (loops[i] != LOOPS) continue;
        if (found != 0) return 0;
        found = (uint16_t)(i * (int)sizeof(int32_t));
    }
    return found;
}

void hkl_trace_learn(lua_State *L, hkl_trace_lesson *s)
{
    const char *thread = (const char *)L;
    if ((word_at(thread, TOP_AT) - word_at(thread, BASE_AT)) / SLOT_BYTES != (uintptr_t)lua_gettop(L)) return;
    switch_compiler(L, s, false);
    for (int i = 0; i < LOOPS; i++)
        run_loop(L, s);
    switch_compiler(L, s, true);
    for (int i = 0; i < LOOPS; i++)
        run_loop(L, s);
    s->jit_base_at = find_jit_base(s);
    const uint16_t number = s->jit_base_at != 0 ? find_number(L, s) : 0;
    if (number != 0) hkl_trace_layout_now = (hkl_trace_layout){BASE_AT, s->jit_base_at, number};
}

#else

void hkl_trace_see(hkl_trace_lesson *s)
{
    (void)s;
}

void hkl_trace_learn(lua_State *L, hkl_trace_lesson *s)
{
    (void)L;
    (void)s;
}

#endif

#include "profile/key.h"

#ifdef HKC_CFI_WALK

enum { INSTRUCTION = 4, LINES_LEAST = 8 };

/* The code of a function, as debug information has it. */
typedef struct code {
    uintptr_t block;      /* that is freed with it */
    uintptr_t begin, end; /* an instruction that runs is the one before what is stored */
    int first, last;      /* lines */
    const void *lines;    /* of each instruction; NULL = they are not looked up here */
    uint8_t line_bytes;   /* each is so long, and counts from `base` */
    int base;
} code;

static int int_at(const void *object, size_t offset)
{
    return *(const int *)(const void *)((const char *)object + offset);
}

#if LUA_VERSION_NUM == 501
/* GCproto lies before its instructions, the first of which is no line's. */
static code code_of_jit(uintptr_t begin)
{
    enum { BYTES = 104, COUNT = 12, FIRST = 72, LINES = 76, INFO = 80 };
    const void *proto = (const void *)(begin - BYTES);
    const int first = int_at(proto, FIRST), lines = int_at(proto, LINES);
    return (code){.block = begin - BYTES,
                  .begin = begin,
                  .end = begin + (uintptr_t)int_at(proto, COUNT) * INSTRUCTION,
                  .first = first,
                  .last = first + lines,
                  .lines = hkl_key_pointer(proto, INFO),
                  .line_bytes = lines < 1 << 8    ? 1
                                : lines < 1 << 16 ? 2
                                                  : 4,
                  .base = first};
}

enum { CODE = 24, COUNT = 80, FIRST = 96, LAST = 100, LINES = 40 };
#elif LUA_VERSION_NUM == 502
enum { CODE = 24, COUNT = 88, FIRST = 104, LAST = 108, LINES = 40 };
#elif LUA_VERSION_NUM == 503
enum { CODE = 56, COUNT = 24, FIRST = 40, LAST = 44, LINES = 72 };
#else
enum { CODE = 64, COUNT = 24, FIRST = 44, LAST = 48, LINES = 0 };
#endif

static code code_of(uintptr_t function)
{
#if LUA_VERSION_NUM == 501
    if (hkl_thread_layout_now.luajit) return code_of_jit(function);
#endif
    const void *proto = (const void *)function;
    const uintptr_t begin = hkl_thread_word(proto, CODE);
    return (code){.block = begin,
                  .begin = begin,
                  .end = begin + (uintptr_t)int_at(proto, COUNT) * INSTRUCTION,
                  .first = int_at(proto, FIRST),
                  .last = int_at(proto, LAST),
                  .lines = LINES != 0 ? hkl_key_pointer(proto, LINES) : NULL,
                  .line_bytes = 4};
}

static bool is_in(const code *c, uintptr_t pc)
{
    return pc > c->begin && pc <= c->end && (pc - c->begin) % INSTRUCTION == 0;
}

uintptr_t hkl_key_code(const hkl_quick_key *key)
{
    if (key->calls == HKL_KEY_PLACE) return key->function;
    const code c = code_of(key->function);
    return key->calls == HKL_KEY_TRACE || is_in(&c, key->pc) ? c.block : 0;
}

/* ---- The lesson ------------------------------------------------------------------------------------- */

static bool wrong, met_c, met_lua;
static uint64_t lines_met;

static int line_of(const code *c, uintptr_t pc)
{
    uintptr_t i = (pc - c->begin) / INSTRUCTION - 1;
    const bool jit = hkl_thread_layout_now.luajit;
    if (jit && i-- == 0) return c->first;
    const uint8_t *at = (const uint8_t *)c->lines + i * c->line_bytes;
    uint32_t line = 0;
    for (int byte = c->line_bytes - 1; byte >= 0; byte--)
        line = line << 8 | at[byte];
    return c->base + (int)line;
}

/* Where the running function is, is another matter for those that keep it in a register. */
static void see_line(const hkl_quick_key *key, const lua_Debug *ar, bool on_top)
{
    const code c = code_of(key->function);
    if (c.first != ar->linedefined || c.last != ar->lastlinedefined) wrong = true;
    lines_met |= (uint64_t)1 << ar->currentline % 64;
    if (wrong || (on_top && hkl_key_in_register())) return;
    if (!is_in(&c, key->pc)) wrong = true;
    else if (c.lines && line_of(&c, key->pc) != ar->currentline) wrong = true;
}

#if LUA_VERSION_NUM == 501

/* What is read below is where and what it should be: level 0 of the stack, a function in it, and a frame of
 * the interpreter on the stack of the machine. */
static bool looks_like_jit(const lua_State *L, const lua_Debug *ar)
{
    enum { SLOT = 8, FUNCTION_KIND_AT = 9, FUNCTION_KIND = 8, FRAMES_MOST = 1 << 20 };
    const uintptr_t *base = hkl_key_pointer(L, HKL_JIT_BASE);
    const uintptr_t cframe = hkl_thread_word(L, HKL_JIT_CFRAME) & ~(uintptr_t)3, here = (uintptr_t)&base;
    const void *function = hkl_key_jit_function(base);
    return (uintptr_t)base ==
               hkl_thread_word(L, HKL_JIT_STACK) + (uintptr_t)(ar->i_ci & 0xffff) * SLOT + SLOT &&
           function && hkl_key_byte(function, FUNCTION_KIND_AT) == FUNCTION_KIND && cframe > here &&
           cframe - here < FRAMES_MOST;
}

static bool key_of(const lua_State *L, const lua_Debug *ar, hkl_quick_key *key)
{
    if (!hkl_thread_layout_now.luajit) return hkl_key_puc(L, key);
    return looks_like_jit(L, ar) && hkl_key_jit(NULL, NULL, L, key);
}

#else

static bool key_of(const lua_State *L, const lua_Debug *ar, hkl_quick_key *key)
{
    return hkl_key_call(L) == (const void *)ar->i_ci && hkl_key_puc(L, key);
}

#endif

#if LUA_VERSION_NUM >= 505
/* The records of calls are linked, as the first two show. The last one lies in the thread, and its function
 * is the first slot of the stack, or 0 while that moves. */
bool hkl_key_placed(lua_State *L)
{
    enum { LEVELS = 2, THREAD_MOST = 512 };
    const uintptr_t thread = (uintptr_t)L;
    const void *call = hkl_key_call(L);
    lua_Debug ar;
    for (int level = 0; level < LEVELS && lua_getstack(L, level, &ar); level++) {
        if (call != (const void *)ar.i_ci) return false;
        call = hkl_key_pointer(call, HKL_CALL_BELOW);
    }
    /* A record of its own block may lie just behind the thread: the last one has none below. */
    const void *below;
    while (call && (below = hkl_key_pointer(call, HKL_CALL_BELOW)) != NULL)
        call = below;
    if (!call || (uintptr_t)call - thread >= THREAD_MOST) return false;
    const uintptr_t first = hkl_thread_word(call, HKL_CALL_FUNCTION);
    return first == 0 || first == hkl_thread_word(L, hkl_thread_layout_now.stack_at);
}
#endif

void hkl_key_see(lua_State *L)
{
    hkl_quick_key key = {0, 0, 0};
    lua_Debug ar;
    if (wrong || !lua_getstack(L, 0, &ar)) return;
    const bool found = key_of(L, &ar, &key);
    for (int level = 0; level < HKL_QUICK_DEPTH; level++) {
        if (!lua_getstack(L, level, &ar) || !lua_getinfo(L, "Sl", &ar)) return;
        if (*ar.what == 'C') {
            met_c = true;
            continue;
        }
        if (!found || (key.calls == 0) != (level == 0)) wrong = true;
        else see_line(&key, &ar, level == 0);
        met_lua = true;
        return;
    }
}

static bool is_known(void)
{
    return !wrong && met_c && met_lua && __builtin_popcountll(lines_met) >= LINES_LEAST;
}

bool hkl_quick_known(void)
{
    return hkl_thread_learn() && is_known();
}

void hkl_key_lesson(hkl_lesson *lesson)
{
    const bool known = hkl_lesson_word(lesson, is_known()) != 0;
    if (lesson->gives) return;
    met_c = met_lua = known && !lesson->broken;
    lines_met = known && !lesson->broken ? ~UINT64_C(0) : 0;
}

#endif

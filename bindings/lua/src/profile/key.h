/* What a stack down to its first function in Lua depends on, from the runtime's own structures, with no call.
 * Where things are in them is written here, and checked in the lesson of hkl_thread_learn. */
#ifndef HKL_PROFILE_KEY_H
#define HKL_PROFILE_KEY_H

#include "lesson/lesson.h"
#include "profile/quick.h"
#include "profile/snap.h"
#include "profile/trace.h"

#ifdef HKC_CFI_WALK

/* 5.5, in the lesson, before anything of the running thread's records is followed: they are where they are
 * read. */
bool hkl_key_placed(lua_State *L);
/* One observation of the lesson: L is the running thread, and on no trace. */
void hkl_key_see(lua_State *L);
/* Gives what the lesson came to, or takes it in its place. */
void hkl_key_lesson(hkl_lesson *lesson);

/* The block with the code of the key's function; 0 = its instruction is none of it. */
uintptr_t hkl_key_code(const hkl_quick_key *key);

/* Instead of calls: the place in the machine code of a trace, which is in place of the function; or, where that
 * is not known, the function in whose frame the trace began. */
#define HKL_KEY_PLACE (~UINT64_C(0))
#define HKL_KEY_TRACE (HKL_KEY_PLACE - 1)

/* The interpreter keeps its instruction in a register: see profile/pc.h. */
static inline bool hkl_key_in_register(void)
{
#if LUA_VERSION_NUM == 501
    return !hkl_thread_layout_now.luajit;
#else
    return LUA_VERSION_NUM >= 504;
#endif
}

static inline uintptr_t hkl_key_word_at(const void *base, int64_t offset)
{
    return *(const uintptr_t *)(const void *)((const char *)base + offset);
}

/* As far as most ways go. */
static inline bool hkl_key_is_way(const hkl_quick_way *way, const void *sp)
{
    return hkl_key_word_at(sp, way->at[0]) == way->pc[0] && hkl_key_word_at(sp, way->at[1]) == way->pc[1] &&
           hkl_key_word_at(sp, way->at[2]) == way->pc[2];
}

/* Of such a way; 0 = it is not, further up. */
__attribute__((always_inline)) static inline uintptr_t
hkl_key_end(const hkl_quick_way *way, const hkc_cfi_registers *at, const uintptr_t *stored)
{
    const void *sp = (const void *)at->sp;
    if (__builtin_expect(way->kind == HKL_QUICK_ON_STACK, 1)) return hkl_key_word_at(sp, way->place);
    for (int i = HKL_QUICK_AT_LEAST; way->at[i] != 0; i++)
        if (hkl_key_word_at(sp, way->at[i]) != way->pc[i]) return 0;
    if ((way->kind & HKL_QUICK_STORED) != 0) return *stored;
    return hkl_key_word_at((way->kind & HKL_QUICK_IN_REGISTER) != 0 ? (const void *)at : sp, way->place);
}

/* The instruction as the interpreter has it, or as it is stored; 0 = this way to the interpreter was not met,
 * or comes first from now on. */
static inline uintptr_t hkl_key_instruction(hkl_quick_way *way, const hkc_cfi_registers *at,
                                            const uintptr_t *stored)
{
    const void *sp = (const void *)at->sp;
    uintptr_t pc = __builtin_expect(hkl_key_is_way(way, sp), 1) ? hkl_key_end(way, at, stored) : 0;
    while (__builtin_expect(pc == 0, 0)) {
        way = way->next;
        if (!way) return 0;
        if (hkl_key_is_way(way, sp)) pc = hkl_key_end(way, at, stored);
        if (pc != 0 && way->patience-- == 0) return 0;
    }
    return pc;
}

static inline uint8_t hkl_key_byte(const void *object, size_t offset)
{
    return ((const uint8_t *)object)[offset];
}

static inline const void *hkl_key_pointer(const void *object, size_t offset)
{
    return (const void *)hkl_thread_word(object, offset);
}

#if LUA_VERSION_NUM == 501

/* LuaJIT with frames of two words. lua_State: base at 32, the bottom of the stack at 56, cframe at 80. A
 * frame: the function below base[-1], which says of what type it is and where the one below begins. A value:
 * its type above bit 47, its object below. A function: 0 at 10 for one in Lua, its code at 32. The frame of
 * the interpreter has the instruction at 24. */
enum {
    HKL_JIT_BASE = 32,
    HKL_JIT_STACK = 56,
    HKL_JIT_CFRAME = 80,
    HKL_JIT_TYPE_AT = 47,
    HKL_JIT_FUNCTION = 0x1fff7, /* that type */
    HKL_JIT_IN_LUA = 10,
    HKL_JIT_CODE = 32,
    HKL_JIT_INSTRUCTION = 24
};

/* NULL = the frame has no function: that of a thread's bottom, or of a coroutine.resume that has failed,
 * which has its result in that place while it makes the message. */
static inline const void *hkl_key_jit_function(const uintptr_t *base)
{
    const uintptr_t value = base[-2];
    if (value >> HKL_JIT_TYPE_AT != HKL_JIT_FUNCTION) return NULL;
    return (const void *)(value & (((uintptr_t)1 << HKL_JIT_TYPE_AT) - 1));
}

/* Whether lua_getinfo may be asked about this level of a stack: LuaJIT follows the function's place, whatever
 * is in it. The low half of i_ci is the frame's slot. */
static inline bool hkl_key_has_function(const lua_State *L, const lua_Debug *ar)
{
    if (!hkl_thread_layout_now.luajit) return true;
    const uintptr_t *frame = hkl_key_pointer(L, HKL_JIT_STACK);
    return hkl_key_jit_function(frame + (ar->i_ci & 0xffff) + 1) != NULL;
}

/* Down through functions in C. */
static inline bool hkl_key_jit_in_c(const uintptr_t *base, hkl_quick_key *key)
{
    enum { LUA = 0, CONTINUATION = 2, VARARG = 3, TYPE = 7 };
    const void *function;
    uint64_t calls = 0;
    uintptr_t pc;
    int in_c = 0;
    do {
        const uintptr_t link = base[-1], type = link & TYPE;
        if (++in_c == HKL_QUICK_DEPTH || type == VARARG) return false;
        if ((type & 3) == LUA) {
            pc = link;
            base -= 2 + ((const uint8_t *)pc)[-3]; /* the slot that the call was made in */
            calls = calls << 4 | 8;
        } else {
            pc = type == CONTINUATION ? base[-3] : 0;
            base -= link / sizeof *base;
            calls = calls << 4 | 8 | type;
        }
        function = hkl_key_jit_function(base);
        if (!function) return false;
    } while (hkl_key_byte(function, HKL_JIT_IN_LUA) != 0);
    *key = (hkl_quick_key){pc, hkl_thread_word(function, HKL_JIT_CODE), calls};
    return true;
}

/* Ways from machine code are told apart by their first two addresses, and those that are longer by the rest. */
enum { HKL_KEY_TRACE_AT_LEAST = 2 };
static inline bool hkl_key_is_trace_way(const hkl_quick_way *way, const void *sp)
{
    if (hkl_key_word_at(sp, way->at[0]) != way->pc[0] || hkl_key_word_at(sp, way->at[1]) != way->pc[1])
        return false;
    if (__builtin_expect(way->kind == HKL_QUICK_ON_STACK, 1)) return true;
    for (int i = HKL_KEY_TRACE_AT_LEAST; i < HKL_QUICK_CLIMB && way->at[i] != 0; i++)
        if (hkl_key_word_at(sp, way->at[i]) != way->pc[i]) return false;
    return true;
}

/* Where the machine code of the trace has called, or, where its way is longer than any that was met, something
 * else; 0 = no way was met. Only places that hkl_snap_has says are in the machine code get slots: to look for
 * something else finds none. Longer ways come first. */
static inline uintptr_t hkl_key_place(const hkl_quick_way *way, const hkc_cfi_registers *at)
{
    const void *sp = (const void *)at->sp;
    do {
        if (__builtin_expect(hkl_key_is_trace_way(way, sp), 1)) return hkl_key_word_at(sp, way->place);
    } while ((way = way->next) != NULL);
    return 0;
}

static inline bool hkl_key_jit_trace(const hkl_quick_way *ways, const hkc_cfi_registers *at,
                                     const void *global, int32_t number, uintptr_t base, hkl_quick_key *key)
{
    const void *trace = hkl_snap_trace(global, number);
    if (__builtin_expect(trace && ways, 1)) {
        *key = (hkl_quick_key){hkl_key_place(ways, at), (uintptr_t)trace, HKL_KEY_PLACE};
        return true;
    }
    const void *function = hkl_key_jit_function((const uintptr_t *)base);
    if (!function || hkl_key_byte(function, HKL_JIT_IN_LUA) != 0) return false;
    const uintptr_t code = hkl_thread_word(function, HKL_JIT_CODE);
    *key = (hkl_quick_key){code, code, HKL_KEY_TRACE};
    return true;
}

/* `ways` and `at` are for traces alone; NULL = as if those were not known. */
static inline bool hkl_key_jit(const hkl_quick_way *ways, const hkc_cfi_registers *at, const lua_State *L,
                               hkl_quick_key *key)
{
    uintptr_t in_trace;
    const void *global = hkl_key_pointer(L, hkl_thread_layout_now.global_at);
    const int32_t trace = hkl_trace_running(global, &in_trace);
    if (trace != 0 && hkl_trace_runs_on(global, L))
        return hkl_key_jit_trace(ways, at, global, trace, in_trace, key);
    const uintptr_t *base = hkl_key_pointer(L, HKL_JIT_BASE);
    const void *function = hkl_key_jit_function(base);
    if (!function) return false;
    if (hkl_key_byte(function, HKL_JIT_IN_LUA) != 0) return hkl_key_jit_in_c(base, key);
    const uintptr_t cframe = hkl_thread_word(L, HKL_JIT_CFRAME) & ~(uintptr_t)3;
    if (cframe == 0) return false;
    *key = (hkl_quick_key){hkl_thread_word((const void *)cframe, HKL_JIT_INSTRUCTION),
                           hkl_thread_word(function, HKL_JIT_CODE), 0};
    return true;
}

/* lua_State: ci at 40, the instruction of the running function at 48, the first ci at 80. CallInfo: of 40
 * bytes; base, func, top, savedpc. Closure: 0 at 10 for one in Lua, Proto at 32. */
enum {
    HKL_CALL_AT = 40,
    HKL_RUNNING_INSTRUCTION = 48,
    HKL_CALL_FIRST = 80,
    HKL_CALL_BYTES = 40,
    HKL_CALL_FUNCTION = 8,
    HKL_CALL_INSTRUCTION = 24,
    HKL_CLOSURE_IN_C = 10,
    HKL_CLOSURE_PROTO = 32
};

static inline bool hkl_key_moves(const lua_State *L)
{
    (void)L;
    return false;
}

static inline const uintptr_t *hkl_key_stored(const lua_State *L)
{
    return (const uintptr_t *)(const void *)((const char *)L + HKL_RUNNING_INSTRUCTION);
}

static inline bool hkl_key_puc(const lua_State *L, hkl_quick_key *key)
{
    const char *call = hkl_key_pointer(L, HKL_CALL_AT), *first = hkl_key_pointer(L, HKL_CALL_FIRST);
    for (uint64_t in_c = 0; call != first && in_c < HKL_QUICK_DEPTH; in_c++, call -= HKL_CALL_BYTES) {
        const void *closure = hkl_key_pointer(hkl_key_pointer(call, HKL_CALL_FUNCTION), 0);
        if (hkl_key_byte(closure, HKL_CLOSURE_IN_C) != 0) continue;
        const uintptr_t pc = in_c == 0 ? hkl_thread_word(L, HKL_RUNNING_INSTRUCTION)
                                       : hkl_thread_word(call, HKL_CALL_INSTRUCTION);
        *key = (hkl_quick_key){pc, hkl_thread_word(closure, HKL_CLOSURE_PROTO), in_c};
        return true;
    }
    return false;
}

#else

/* lua_State: ci at 32. CallInfo: func, top, previous, next; where the instruction is and what says that the
 * function is in C. */
enum {
    HKL_CALL_AT = 32,
    HKL_CALL_FUNCTION = 0,
    HKL_CALL_TOP = 8,
    HKL_CALL_BELOW = 16,
#if LUA_VERSION_NUM == 502
    HKL_CALL_INSTRUCTION = 56,
    HKL_CALL_STATUS = 34, /* a byte */
    HKL_CALL_BIT = 1,
#elif LUA_VERSION_NUM == 505
    HKL_CALL_INSTRUCTION = 32,
    HKL_CALL_STATUS = 60, /* four bytes, of which the last 9 bits are others' and the next 16 are wanted */
    HKL_CALL_BIT = 1 << 6,
#else
    HKL_CALL_INSTRUCTION = LUA_VERSION_NUM == 504 ? 32 : 40,
    HKL_CALL_STATUS = LUA_VERSION_NUM == 504 ? 62 : 66,
    HKL_CALL_BIT = 2,
#endif
    HKL_CALL_BIT_IN_C = LUA_VERSION_NUM >= 504, /* before: in Lua */
    HKL_CLOSURE_PROTO = 24
};

static inline bool hkl_key_has_function(const lua_State *L, const lua_Debug *ar)
{
    (void)L;
    (void)ar;
    return true;
}

static inline const void *hkl_key_call(const lua_State *L)
{
    return hkl_key_pointer(L, HKL_CALL_AT);
}

/* Returns whether the runtime moves the stack of L just now: from 5.4.6 on the records of calls have offsets from
 * the bottom of the stack in place of pointers meanwhile. */
static inline bool hkl_key_moves(const lua_State *L)
{
#if LUA_VERSION_NUM >= 504
    return hkl_thread_word(hkl_key_call(L), HKL_CALL_FUNCTION) <
           hkl_thread_word(L, hkl_thread_layout_now.stack_at);
#else
    (void)L;
    return false;
#endif
}

#if LUA_VERSION_NUM >= 504
/* Adds to the place of the function in the records of the innermost calls, at most so many: the bottom of the stack
 * makes pointers of offsets, its negative makes offsets again. */
static inline void hkl_key_shift(const lua_State *L, size_t most, uintptr_t by)
{
    const void *call = hkl_key_call(L);
    for (; call && most > 0; most--) {
        *(uintptr_t *)((uintptr_t)call + HKL_CALL_FUNCTION) += by;
        call = hkl_key_pointer(call, HKL_CALL_BELOW);
    }
}
#endif

/* With the bit for functions in C. */
static inline unsigned hkl_key_status(const void *call)
{
    const char *at = (const char *)call + HKL_CALL_STATUS;
#if LUA_VERSION_NUM == 505
    const unsigned status = *(const uint32_t *)(const void *)at >> 9 & 0xffff;
#else
    const unsigned status =
        LUA_VERSION_NUM == 502 ? *(const uint8_t *)at : *(const uint16_t *)(const void *)at;
#endif
    return HKL_CALL_BIT_IN_C ? status : status ^ HKL_CALL_BIT;
}

static inline bool hkl_key_in_c(unsigned status)
{
    return (status & HKL_CALL_BIT) != 0;
}

static inline const uintptr_t *hkl_key_stored(const lua_State *L)
{
    return (const uintptr_t *)(const void *)((const char *)hkl_key_call(L) + HKL_CALL_INSTRUCTION);
}

static inline bool hkl_key_puc(const lua_State *L, hkl_quick_key *key)
{
    const void *call = hkl_key_call(L);
    unsigned status = hkl_key_status(call);
    uint64_t calls = 0;
    if (hkl_key_in_c(status)) {
        int in_c = 0;
        do {
            call = hkl_key_pointer(call, HKL_CALL_BELOW);
            if (!call || ++in_c == HKL_QUICK_DEPTH) return false;
            calls = calls << 16 | status;
            status = hkl_key_status(call);
        } while (hkl_key_in_c(status));
        calls = calls << 16 | status;
    }
    const void *closure = hkl_key_pointer(hkl_key_pointer(call, HKL_CALL_FUNCTION), 0);
    *key = (hkl_quick_key){hkl_thread_word(call, HKL_CALL_INSTRUCTION),
                           hkl_thread_word(closure, HKL_CLOSURE_PROTO), calls};
    return true;
}

#endif

/* false = not one of those that are kept. `ways` are those of where lua_Alloc was called. */
static inline bool hkl_key_of(hkl_quick_way *ways, const lua_State *L, const hkc_cfi_registers *at,
                              hkl_quick_key *key)
{
#if LUA_VERSION_NUM == 501
    if (hkl_thread_layout_now.luajit) return hkl_key_jit(ways, at, L, key);
#endif
    if (hkl_key_moves(L) || !hkl_key_puc(L, key)) return false;
    if (hkl_key_in_register() && key->calls == 0) key->pc = hkl_key_instruction(ways, at, hkl_key_stored(L));
    return true;
}

#endif
#endif

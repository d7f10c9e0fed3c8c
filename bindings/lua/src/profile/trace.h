/* LuaJIT's compiled traces. On one, the stack pointer of the thread is that from before: the runtime notes
 * the frame in which the trace began, and its number, in places of its own that are learnt here. */
#ifndef HKL_PROFILE_TRACE_H
#define HKL_PROFILE_TRACE_H

#include <lua.h>

#include <stdbool.h>
#include <stdint.h>

/* Bytes from the beginning of what all threads share, or of the thread; 0 = not known. */
typedef struct hkl_trace_layout {
    uint16_t base_at;     /* of the thread: its stack pointer */
    uint16_t jit_base_at; /* the frame of the trace that runs; NULL = none runs */
    uint16_t number_at;   /* int32: the number of that trace */
} hkl_trace_layout;

/* Of this process, after hkl_thread_learn; all 0 = no compiler, or not learnt: then nothing is known to be on
 * a trace. */
extern hkl_trace_layout hkl_trace_layout_now;

/* The lesson, for a scratch state of LuaJIT; `see` is to be called by its lua_Alloc. Raises errors. */
typedef struct hkl_trace_lesson {
    const char *global; /* NULL = nothing to see now */
    uintptr_t base;     /* where the trace's frame will be */
    uint16_t jit_base_at;
    bool compiled;
    enum { HKL_LESSON_WORDS = 256 } words;
    uint16_t on[HKL_LESSON_WORDS], off[HKL_LESSON_WORDS]; /* how often a word was `base` */
    int32_t number[HKL_LESSON_WORDS * 2];                 /* last value on a trace; -1 = it cannot be it */
} hkl_trace_lesson;

void hkl_trace_see(hkl_trace_lesson *lesson);
void hkl_trace_learn(lua_State *L, hkl_trace_lesson *lesson);

/* The number of the trace that runs, and the frame in which it began; 0 = none. */
static inline int32_t hkl_trace_running(const void *global, uintptr_t *base)
{
    const hkl_trace_layout *layout = &hkl_trace_layout_now;
    if (layout->jit_base_at == 0) return 0;
    *base = *(const uintptr_t *)(const void *)((const char *)global + layout->jit_base_at);
    if (*base == 0) return 0;
    return *(const int32_t *)(const void *)((const char *)global + layout->number_at);
}

#endif

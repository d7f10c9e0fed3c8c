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
    uint16_t number_at;   /* int32: the number of that trace; below 0: what else runs */
    uint16_t thread_at;   /* the thread that runs */
    uint16_t global_at;   /* of the thread: what all threads share */
    uint16_t events_at;   /* a byte: which events may have handlers of jit.attach; 0xff = each is looked up */
} hkl_trace_layout;

/* Of this process, after hkl_trace_learn; all 0 = no compiler, or not learnt: then nothing is known to be on
 * a trace. */
extern hkl_trace_layout hkl_trace_layout_now;

/* Once in a process, from a scratch state; later calls return at once. */
void hkl_trace_learn(void);

/* The number of the trace that runs, and the frame in which it began; 0 = none. */
static inline int32_t hkl_trace_running(const void *global, uintptr_t *base)
{
    const hkl_trace_layout *layout = &hkl_trace_layout_now;
    if (layout->jit_base_at == 0) return 0;
    *base = *(const uintptr_t *)(const void *)((const char *)global + layout->jit_base_at);
    if (*base == 0) return 0;
    return *(const int32_t *)(const void *)((const char *)global + layout->number_at);
}

/* It is this thread's. */
static inline bool hkl_trace_runs_on(const void *global, const lua_State *L)
{
    const uint16_t at = hkl_trace_layout_now.thread_at;
    return *(const lua_State *const *)(const void *)((const char *)global + at) == L;
}

static inline const void *hkl_trace_global(const lua_State *L)
{
    return *(const void *const *)(const void *)((const char *)L + hkl_trace_layout_now.global_at);
}

/* The collector itself runs, and no finalizer. */
static inline bool hkl_trace_collects(const lua_State *L)
{
    enum { COLLECTS = -3 }; /* ~LJ_VMST_GC */
    const uint16_t at = hkl_trace_layout_now.number_at;
    return at != 0 && *(const int32_t *)(const void *)((const char *)hkl_trace_global(L) + at) == COLLECTS;
}

/* On a trace: the thread's stack pointer becomes the frame in which the trace began, so that an error is
 * raised from there. Later LuaJITs do so themselves. false = no trace runs. */
static inline bool hkl_trace_to_base(const lua_State *L)
{
    uintptr_t base;
    const void *global = hkl_trace_global(L);
    if (hkl_trace_running(global, &base) <= 0) return false;
    char *thread = *(char *const *)(const void *)((const char *)global + hkl_trace_layout_now.thread_at);
    *(uintptr_t *)(void *)(thread + hkl_trace_layout_now.base_at) = base;
    return true;
}

/* No handler of jit.attach is called from now on; returns which events may have had one, 0 = none, or not
 * known. */
static inline uint8_t hkl_trace_events_off(const lua_State *L)
{
    const uint16_t at = hkl_trace_layout_now.events_at;
    if (at == 0) return 0;
    uint8_t *events = (uint8_t *)(uintptr_t)hkl_trace_global(L) + at, were = *events;
    *events = 0;
    return were;
}

/* These have again. LuaJIT goes wrong where events are said to have handlers and there never was one. */
static inline void hkl_trace_events_on(const lua_State *L, uint8_t events)
{
    const uint16_t at = hkl_trace_layout_now.events_at;
    if (at != 0) *((uint8_t *)(uintptr_t)hkl_trace_global(L) + at) |= events;
}

#endif

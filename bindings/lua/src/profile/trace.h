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
    uint16_t
        hooks_at; /* a byte: which hooks there are, and what goes on; another: whether a trace is recorded */
    uint16_t traces_at;      /* an array of all traces, by number */
    bool has_snapshots;      /* and these are as profile/snap.h has them */
    uint8_t object_constant; /* what the compiler calls a constant that is an object; 0 = not known */
    /* functions of the runtime that traces call: for constructors, and for strings of several parts, of numbers,
     * and of a part of a string; 0 = not known */
    uintptr_t new_table, copy_table, join, integer_text, number_text, part;
} hkl_trace_layout;

/* Of this process, after hkl_trace_learn; all 0 = no compiler, or not learnt: then nothing is known to be on
 * a trace. */
extern hkl_trace_layout hkl_trace_layout_now;

/* Once in a process, from a scratch state; later calls return at once. */
void hkl_trace_learn(void);

/* Leaves an object behind that the collector will find, with this finalizer. */
void hkl_trace_garbage(lua_State *L, lua_CFunction finalizer);

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

/* What runs, as far as that is known. */
typedef enum hkl_trace_where {
    HKL_TRACE_ELSEWHERE, /* on a trace, in the collector or the compiler */
    HKL_TRACE_INTERPRETED,
    HKL_TRACE_RECORDED, /* the same while a trace is recorded */
    HKL_TRACE_IN_C /* a function that interpreted code or the end of a trace has called; no trace is returned
                      to */
} hkl_trace_where;

static inline hkl_trace_where hkl_trace_now(const lua_State *L)
{
    enum { INTERPRETED = -1, IN_C = -2, RECORDED = 0x20 }; /* ~LJ_VMST_INTERP, ~LJ_VMST_C, DISPMODE_REC */
    const hkl_trace_layout *layout = &hkl_trace_layout_now;
    const char *global = (const char *)hkl_trace_global(L);
    if (layout->jit_base_at == 0) return HKL_TRACE_INTERPRETED;
    if (*(const uintptr_t *)(const void *)(global + layout->jit_base_at) != 0) return HKL_TRACE_ELSEWHERE;
    const int32_t state = *(const int32_t *)(const void *)(global + layout->number_at);
    if (layout->hooks_at != 0 && (global[layout->hooks_at + 1] & RECORDED) != 0) return HKL_TRACE_RECORDED;
    return state == INTERPRETED ? HKL_TRACE_INTERPRETED
           : state == IN_C      ? HKL_TRACE_IN_C
                                : HKL_TRACE_ELSEWHERE;
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

/* Whether no trace is begun, as in a finalizer. */
enum { HKL_TRACE_FINALIZES = 0x40 /* HOOK_GC */ };
static inline void hkl_trace_forbid(const lua_State *L, bool forbid)
{
    const uint16_t at = hkl_trace_layout_now.hooks_at;
    uint8_t *hooks = (uint8_t *)(uintptr_t)hkl_trace_global(L) + at;
    if (at != 0) *hooks = (uint8_t)(forbid ? *hooks | HKL_TRACE_FINALIZES : *hooks & ~HKL_TRACE_FINALIZES);
}

/* What goes on above the mask of hooks: a hook, a handler of jit.attach or a finalizer runs, or
 * hkl_trace_forbid has said so. */
static inline unsigned hkl_trace_goes_on(const lua_State *L)
{
    enum { MASK = 0x0f };
    const uint16_t at = hkl_trace_layout_now.hooks_at;
    return at != 0 ? ((const uint8_t *)hkl_trace_global(L))[at] & (unsigned)~MASK : 0;
}

static inline bool hkl_trace_finalizes(const lua_State *L)
{
    enum { BOTH = HKL_TRACE_FINALIZES | 0x10 /* HOOK_ACTIVE */ };
    return (hkl_trace_goes_on(L) & BOTH) == BOTH;
}

/* These have again. LuaJIT goes wrong where events are said to have handlers and there never was one. */
static inline void hkl_trace_events_on(const lua_State *L, uint8_t events)
{
    const uint16_t at = hkl_trace_layout_now.events_at;
    if (at != 0) *((uint8_t *)(uintptr_t)hkl_trace_global(L) + at) |= events;
}

#endif

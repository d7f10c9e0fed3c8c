/* Which Lua thread asks for memory. The runtime calls lua_Alloc with L in a register that the called function
 * has to leave as it is: the runtime needs L afterwards, to raise the error of an allocation that fails.
 * Which register that is, is fixed for each return address: it is learnt once in a process, from a scratch
 * state whose running thread is known. */
#ifndef HKL_PROFILE_THREAD_H
#define HKL_PROFILE_THREAD_H

#include "cfi.h"
#include "state.h"

#include <stdbool.h>

/* Once in a process; later calls return at once. false = the platform has no registers to look at, or the
 * runtime is none that is known: no thread is found then. */
bool hkl_thread_learn(void);
/* The runtime is LuaJIT; false where hkl_thread_learn cannot tell. */
bool hkl_thread_luajit(void);

#ifdef HKC_CFI_WALK

/* How to go up from the frames that were met so far; one a profile, for it is not shared. */
enum { HKL_WALK_SLOTS = 128, HKL_WALK_PROBES = 8 };
struct hkl_walk_step {
    uintptr_t pc; /* 0 = free */
    hkc_cfi_saves saves;
    int8_t site;        /* of the runtime's call of lua_Alloc; -1 = this is another frame */
    int8_t thread;      /* of such a call: the one register that has the thread; -1 = not known */
    int8_t instruction; /* the register of hkl_pc_register */
    bool ok;
};
typedef struct hkl_walk {
    struct hkl_walk_step steps[HKL_WALK_SLOTS];
} hkl_walk;

/* How to leave the frame with this return address; for use while learning. */
const struct hkl_walk_step *hkl_thread_rule(hkl_walk *walk, uintptr_t pc);

static inline size_t hkl_thread_home(uintptr_t pc)
{
    return (pc ^ pc >> 7) % HKL_WALK_SLOTS;
}

/* What is known of a return address. Most have their home; hkl_thread_step_far looks at the places behind it. */
const struct hkl_walk_step *hkl_thread_step_far(hkl_walk *walk, uintptr_t pc);
static inline const struct hkl_walk_step *hkl_thread_step(hkl_walk *walk, uintptr_t pc)
{
    const struct hkl_walk_step *step = &walk->steps[hkl_thread_home(pc)];
    return __builtin_expect(step->pc == pc && pc != 0, 1) ? step : hkl_thread_step_far(walk, pc);
}

/* From somewhere inside of lua_Alloc to its return into the runtime. false = it is not to be found. */
bool hkl_thread_unwind(hkl_walk *walk, hkc_cfi_registers *at);

/* The thread for which the runtime called lua_Alloc, from the registers at that return; NULL = not found, or
 * the state is being made. */
lua_State *hkl_thread_at(hkl_walk *walk, const hkl_state *st, const hkc_cfi_registers *at);

/* Where the runtime's lua_State has what is needed here; checked on the threads of the scratch state. One
 * module serves 5.1 and LuaJIT, so that only a running state tells which it is. */
typedef struct hkl_thread_layout {
    uint8_t type_at, type; /* the type of an object, that of a thread */
    uint8_t global_at;     /* the pointer that all threads of a state share */
    uint8_t stack_at;      /* the bottom of the stack; from 5.4 on */
    bool luajit;
} hkl_thread_layout;

extern hkl_thread_layout hkl_thread_layout_now; /* of this process, after hkl_thread_learn */

/* The word at a place of an object of the runtime. */
static inline uintptr_t hkl_thread_word(const void *object, size_t offset)
{
    return *(const uintptr_t *)(const void *)((const char *)object + offset);
}

/* It looks like a thread of the state. */
static inline bool hkl_thread_looks(const void *L, uintptr_t global)
{
    const hkl_thread_layout *layout = &hkl_thread_layout_now;
    return ((const uint8_t *)L)[layout->type_at] == layout->type &&
           hkl_thread_word(L, layout->global_at) == global;
}

/* What the one register has that a place is known to keep the thread in; false = not now. */
static inline bool hkl_thread_is(const hkl_state *st, const lua_State *L)
{
    if ((uintptr_t)L < 4096 || (uintptr_t)L % sizeof(void *) != 0) return false;
    return hkl_thread_looks(L, hkl_thread_word(st->main, hkl_thread_layout_now.global_at));
}

#endif
#endif

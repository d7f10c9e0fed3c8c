/* The instruction at which a function in Lua really is. 5.1, 5.4 and 5.5 keep it in a register of their
 * interpreter, or 5.5 in a word of its frame where the compiler has none to spare, and do not store it for
 * each instruction that allocates: a table's constructor has the place of what was stored last, often the
 * call on the line above. */
#ifndef HKL_PROFILE_PC_H
#define HKL_PROFILE_PC_H

#include "lesson/lesson.h"
#include "profile/thread.h"

#ifdef HKC_CFI_WALK

/* Frames from lua_Alloc up to the interpreter. */
enum { HKL_PC_CLIMB_MOST = 6 };

/* One observation of the lesson: L is the running thread, with a hook for each instruction, so that what is
 * stored is right; `at` as hkl_thread_at has it. */
void hkl_pc_see(hkl_walk *rules, lua_State *L, const hkc_cfi_registers *at);
/* The lesson is over. */
void hkl_pc_learnt(void);
/* Gives what the lesson came to, or takes it in its place. */
void hkl_pc_lesson(hkl_lesson *lesson);

/* The register that has the instruction where the interpreter's code goes on at pc; from HKL_PC_IN_FRAME on:
 * the word of the frame that has it, counted from sp. */
enum {
    HKL_PC_ELSEWHERE = -1,
    HKL_PC_STORED = -2, /* not the interpreter, or not learnt; it has none, or not known */
    HKL_PC_IN_FRAME = HKC_CFI_SAVED,
    HKL_PC_FRAME_WORDS = LUA_VERSION_NUM >= 505 ? 64 : 0
};
int hkl_pc_register(uintptr_t pc);
static inline bool hkl_pc_in_frame(int found)
{
    return HKL_PC_FRAME_WORDS > 0 && found >= HKL_PC_IN_FRAME;
}

/* Where `now` is stored; NULL = nothing to correct. The caller puts *before back when it has asked. */
typedef struct hkl_pc_patch {
    uintptr_t *stored, before;
} hkl_pc_patch;

/* Stores the instruction of the function in Lua at level 0, which `ar` is about (with "S"). */
hkl_pc_patch hkl_pc_correct(hkl_walk *walk, lua_State *L, const lua_Debug *ar, const hkc_cfi_registers *at);
static inline void hkl_pc_restore(hkl_pc_patch patch)
{
    if (patch.stored) *patch.stored = patch.before;
}

#endif
#endif

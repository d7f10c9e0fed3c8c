/* Which line of Lua a place in the machine code of a LuaJIT trace belongs to. A trace has snapshots: where its
 * machine code may be left, and at which instruction and in which inlined functions the interpreter goes on.
 * The snapshot before a place is where to look for the instruction that allocates there. */
#ifndef HKL_PROFILE_SNAP_H
#define HKL_PROFILE_SNAP_H

#include "profile/thread.h"
#include "profile/trace.h"

#ifdef HKC_CFI_WALK
#if LUA_VERSION_NUM == 501

enum { HKL_SNAP_DEPTH = 16 };

/* GCtrace: the number of snapshots at 10, instructions of the compiler at 32, snapshots at 48, what they
 * restore at 56, the instruction where the trace begins at 72 and 80 (its word, as the trace has replaced it),
 * the size of the machine code at 84, the code at 88, the loop in it at 96, the trace's number at 104. */
enum {
    HKL_SNAP_KIND_AT = 9,
    HKL_SNAP_KIND = 9, /* what GCtrace has there */
    HKL_SNAP_COUNT = 10,
    HKL_SNAP_IR = 32,
    HKL_SNAP_ALL = 48,
    HKL_SNAP_MAP = 56,
    HKL_SNAP_BEGINS = 72,
    HKL_SNAP_BEGINS_WITH = 80,
    HKL_SNAP_SIZE = 84,
    HKL_SNAP_CODE = 88,
    HKL_SNAP_LOOP = 96,
    HKL_SNAP_NUMBER = 104,
    HKL_SNAP_BYTES = 112
};

/* Returns the trace with this number, or NULL if that is not known. */
static inline const void *hkl_snap_trace(const void *global, int32_t number)
{
    const uint16_t at = hkl_trace_layout_now.traces_at;
    if (at == 0 || number <= 0) return NULL;
    const uintptr_t *traces = (const uintptr_t *)hkl_thread_word(global, at);
    return (const void *)traces[number];
}

/* Whether a call in the machine code of the trace returns to pc. */
static inline bool hkl_snap_has(const void *trace, uintptr_t pc)
{
    const uint32_t size = *(const uint32_t *)(const void *)((const char *)trace + HKL_SNAP_SIZE);
    return pc - hkl_thread_word(trace, HKL_SNAP_CODE) - 1 < size;
}

/* Returns the address in the machine code of the trace to which the call returns that came to lua_Alloc, from
 * the registers of the runtime's call of lua_Alloc; 0 = not found. */
uintptr_t hkl_snap_pc(hkl_walk *walk, const void *trace, const hkc_cfi_registers *at);

/* Gives the instructions that run where the machine code calls something that returns to pc: the one that
 * allocates, then those that called the inlined functions, from the innermost on. Returns how many; 0 = not
 * known. */
size_t hkl_snap_places(const void *global, const void *trace, uintptr_t pc, const uint32_t **places,
                       size_t room);

/* Where an instruction of LuaJIT stands. */
typedef struct hkl_snap_line {
    const char *source; /* as lua_Debug.source */
    int line, defined;
} hkl_snap_line;
/* Returns the line of an instruction of a function; false = the function has no lines. */
bool hkl_snap_line_of(const uint32_t *instruction, hkl_snap_line *out);
/* Returns the instruction at which the trace begins. */
const uint32_t *hkl_snap_begins(const void *trace);

/* Returns what the call calls that returns to pc; 0 = the call has no address in it. */
uintptr_t hkl_snap_target(uintptr_t pc);

/* snap_learn.c: learns where the traces are and whether their lines are found, for hkl_trace_learn. L is a
 * scratch state with its compiler on, and the first block of the state ends at `end`. hkl_snap_see is told each
 * allocation of L meanwhile; it returns at once at other times. May raise an error. */
void hkl_snap_learn(lua_State *L, const char *end);
void hkl_snap_see(size_t size);

#endif
#endif
#endif

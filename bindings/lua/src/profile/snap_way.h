/* What snap.c and snap_call.c share: the instructions of LuaJIT 2.1, and where a trace is. */
#ifndef HKL_PROFILE_SNAP_WAY_H
#define HKL_PROFILE_SNAP_WAY_H

#include "profile/snap.h"

#if defined(HKC_CFI_WALK) && LUA_VERSION_NUM == 501

/* Instructions of LuaJIT 2.1. */
enum {
    OP_ISF = 15,
    OP_MOV = 18,
    OP_UNM = 20,
    OP_CAT = 38,
    OP_UGET = 45,
    OP_UCLO = 50,
    OP_TNEW = 52,
    OP_TDUP = 53,
    OP_GGET = 54,
    OP_TGETV = 56,
    OP_TGETS = 57,
    OP_TSETV = 60,
    OP_TSETR = 64,
    OP_CALLM = 65,
    OP_CALL = 66,
    OP_CALLMT = 67,
    OP_CALLT = 68,
    OP_ITERN = 70,
    OP_ISNEXT = 72,
    OP_RETM = 73,
    OP_RET1 = 76,
    OP_FORL = 79,
    OP_JFORL = 81,
    OP_ITERL = 82,
    OP_JITERL = 84,
    OP_JLOOP = 87,
    OP_JMP = 88,
    OP_FUNCF = 89,
    OP_JFUNCV = 94
};

/* GCproto, which lies before its instructions: see code_of_jit in key.c. */
enum {
    HKL_PROTO_BYTES = 104,
    HKL_PROTO_COUNT = 12,
    HKL_PROTO_CONSTANTS = 32,
    HKL_PROTO_SOURCE = 64,
    HKL_PROTO_FIRST = 72,
    HKL_PROTO_SPAN = 76,
    HKL_PROTO_LINES = 80
};
enum { HKL_TEXT_AT = 24 }; /* of a string of Lua */

static inline uint32_t hkl_snap_word32(const void *object, size_t offset)
{
    return *(const uint32_t *)(const void *)((const char *)object + offset);
}

static inline uint16_t hkl_snap_word16(const void *object, size_t offset)
{
    return *(const uint16_t *)(const void *)((const char *)object + offset);
}

static inline unsigned hkl_snap_operation(uint32_t instruction)
{
    return instruction & 0xff;
}

/* Where a trace is between two snapshots, and how it came there. */
typedef struct hkl_snap_way {
    const void *global, *trace;
    const uint32_t *places[HKL_SNAP_DEPTH]; /* the instruction, and those that called */
    uintptr_t closures[HKL_SNAP_DEPTH];     /* the functions; 0 = not known */
    size_t depth;
    uintptr_t target; /* what the machine code calls */
    unsigned next;    /* snapshot */
} hkl_snap_way;

/* Returns the first instruction of a function, which is of a kind that no other is. */
static inline const uint32_t *hkl_snap_first(const uint32_t *instruction)
{
    while (hkl_snap_operation(*instruction) < OP_FUNCF || hkl_snap_operation(*instruction) > OP_JFUNCV)
        instruction--;
    return instruction;
}

/* snap_call.c: what the call at the way's place calls. */
typedef struct hkl_snap_callee {
    const char *name;      /* under which it was looked up; NULL = not known */
    const uint32_t *first; /* of a function in Lua; NULL = none, or not known */
    uintptr_t closure;     /* 0 = not known */
    bool in_c;             /* a function in C */
} hkl_snap_callee;
hkl_snap_callee hkl_snap_called(const hkl_snap_way *way);
/* Returns the name under which a call finds its function; NULL = it has none. */
const char *hkl_snap_name(const uint32_t *call);
/* Returns the only function in Lua among the constants of the trace for which fn is true; NULL = none, or more. */
hkl_snap_callee hkl_snap_only(const hkl_snap_way *way,
                              bool (*fn)(const hkl_snap_way *way, const uint32_t *first));
/* Returns the function of the frame in which the trace began; 0 = not known. */
uintptr_t hkl_snap_base_function(const void *global);

#endif
#endif

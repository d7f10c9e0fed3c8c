/* Stacks down to the first function in Lua that an exact profile by line has met before. What such a stack
 * depends on is its key: few instructions of Lua make most allocations, and to find the slot of a key takes
 * no walk. */
#ifndef HKL_PROFILE_QUICK_H
#define HKL_PROFILE_QUICK_H

#include "profile/frames.h"

#ifdef HKC_CFI_WALK

enum {
    HKL_QUICK_SLOT_BITS = 11,
    HKL_QUICK_SLOTS = 1 << HKL_QUICK_SLOT_BITS,
    HKL_QUICK_CODES = 1024,
    HKL_QUICK_HEADS = 2048,
    HKL_QUICK_ENTRY_BITS = 7,
    HKL_QUICK_ENTRIES = 1 << HKL_QUICK_ENTRY_BITS,
    HKL_QUICK_WAYS = 128,
    HKL_QUICK_CLIMB = 6,
    HKL_QUICK_AT_LEAST = 3,
    HKL_QUICK_DEPTH = 4
};

/* What a stack down to its first function in Lua depends on. */
typedef struct hkl_quick_key {
    uintptr_t pc;       /* the instruction of Lua, or an address in the machine code of a trace; 0 = none */
    uintptr_t function; /* what functions of the same code have in common, or the trace */
    uint64_t calls;     /* of functions in C above it; 0 = there are none */
} hkl_quick_key;

typedef struct hkl_quick_slot {
    hkl_quick_key key;   /* pc 0: the slot is free */
    uint32_t user;       /* the caller's; 0 when the slot gets another key */
    uint16_t code, next; /* `next`: number of the next slot of this code, and 1; 0 = no more */
    uint16_t count;      /* of frames */
} hkl_quick_slot;

/* A way from lua_Alloc up to the interpreter or to the machine code of a trace, through frames of constant size:
 * with these return addresses at their places it is known where the interpreter's instruction is, or the return
 * address of the machine code. */
enum { HKL_QUICK_ON_STACK = 0, HKL_QUICK_IN_REGISTER = 1, HKL_QUICK_STORED = 2, HKL_QUICK_LONGER = 4 };
typedef struct hkl_quick_way {
    struct hkl_quick_way *next; /* from the same place of the runtime; NULL = no more */
    uint32_t patience;          /* so often it may be found behind others until it comes first */
    int32_t kind;  /* where the instruction is, and whether there are more than HKL_QUICK_AT_LEAST of `at` */
    int32_t place; /* of the instruction: bytes from sp, or from the registers */
    int32_t at[HKL_QUICK_CLIMB]; /* bytes from sp; at least HKL_QUICK_AT_LEAST of them, then 0 */
    uintptr_t pc[HKL_QUICK_CLIMB];
} hkl_quick_way;

/* Where the runtime calls lua_Alloc. */
typedef struct hkl_quick_entry {
    uintptr_t pc;
    hkl_quick_way *ways; /* at least one, which may be that of nothing */
    uint64_t thread;     /* the register that has the thread */
    uint64_t unused[5];  /* of a cache line */
} hkl_quick_entry;

typedef struct hkl_quick {
    const hkl_state *st;
    hkl_walk *walk;
    hkl_frames *frames;
    const lua_State *main;
    hkl_quick_entry entries[HKL_QUICK_ENTRIES];
    hkl_quick_way ways[HKL_QUICK_WAYS]; /* [0] of nothing */
    hkl_quick_slot slots[HKL_QUICK_SLOTS];
    uintptr_t stacks[HKL_QUICK_SLOTS][HKL_QUICK_DEPTH];
    /* Blocks with the code of functions, and traces, in `slots`. When one is freed another function may come to lie there:
     * its slots are free then. */
    struct hkl_quick_code {
        uintptr_t block;
        uint16_t next; /* with the same head */
        uint16_t slots;
    } codes[HKL_QUICK_CODES]; /* [0] of what is no code */
    uint16_t heads[HKL_QUICK_HEADS], code_count, way_count;
} hkl_quick;

/* The runtime is one whose structures are as profile/key.h has them; else there are no keys. */
bool hkl_quick_known(void);

/* Nothing is known; *q may be anything. What it points to is the profile's. */
void hkl_quick_begin(hkl_quick *q, const hkl_state *st, hkl_walk *walk, hkl_frames *frames);

/* The slot of the stack of who asks for memory, from the registers at the runtime's call of lua_Alloc. It is
 * that of the same stack until that stack's code is freed or another one needs the place; `user` is 0 when a
 * stack is new to it. Below 0 = this stack has none: it is to be walked. Only where hkl_quick_known. */
int hkl_quick_find(hkl_quick *q, const hkc_cfi_registers *at);

/* The frames of a slot, as hkl_frames_walk gives them with 1 for `most`; returns how many. */
static inline size_t hkl_quick_frames(const hkl_quick *q, int slot, const uintptr_t **frames)
{
    *frames = q->stacks[slot];
    return q->slots[slot].count;
}

/* Slots of this code are free. */
void hkl_quick_forget(hkl_quick *q, uintptr_t block);
static inline unsigned hkl_quick_head(uintptr_t block)
{
    return (unsigned)((block >> 4 ^ block >> 12) % HKL_QUICK_HEADS);
}
/* A block is about to be freed. */
static inline void hkl_quick_freed(hkl_quick *q, const void *block)
{
    if (__builtin_expect(q->heads[hkl_quick_head((uintptr_t)block)] != 0, 0))
        hkl_quick_forget(q, (uintptr_t)block);
}

#endif
#endif

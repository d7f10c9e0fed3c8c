/* Stacks that an exact profile has met before, by the instruction of Lua that allocates: most allocations are by
 * few instructions. Of 5.4, whose structures are looked at without a call; the other runtimes walk. */
#ifndef HKL_PROFILE_QUICK_H
#define HKL_PROFILE_QUICK_H

#include "profile/frames.h"

#include <string.h>

#if defined(HKC_CFI_WALK) && LUA_VERSION_NUM == 504
#define HKL_QUICK 1

enum { HKL_QUICK_STACKS = 1024, HKL_QUICK_CODES = 256, HKL_QUICK_DEPTH = 4 };

/* What a stack down to its first function in Lua depends on. */
typedef struct hkl_quick_key {
    uintptr_t proto, pc;
    uint64_t calls; /* 16 bits of each call, the function in Lua's lowest; 0 = not known */
} hkl_quick_key;

typedef struct hkl_quick {
    struct {
        hkl_quick_key key;
        uint32_t generation;
        uint8_t code, count;
        uintptr_t frames[HKL_QUICK_DEPTH];
    } stacks[HKL_QUICK_STACKS];
    /* Code of functions in `stacks`. When it is freed another function may come to lie there: its stacks are of an
     * older generation then. */
    struct {
        uintptr_t at;
        uint32_t generation;
    } codes[HKL_QUICK_CODES];
    int usual; /* the register in which the interpreter has its instruction */
} hkl_quick;

static inline void hkl_quick_clear(hkl_quick *q)
{
    memset(q, 0, sizeof *q);
}

/* lua_State: ci at 32. CallInfo: func, top, previous, next, savedpc; callstatus at 62, of which bit 1 says that the
 * function is in C. Checked while threads are learnt. */
static inline const void *hkl_quick_call(const lua_State *L)
{
    return (const void *)hkl_thread_word(L, 32);
}
static inline const void *hkl_quick_caller(const void *call)
{
    return (const void *)hkl_thread_word(call, 16);
}
static inline uint16_t hkl_quick_status(const void *call)
{
    return *(const uint16_t *)(const void *)((const char *)call + 62);
}
static inline bool hkl_quick_in_c(const void *call)
{
    return hkl_quick_status(call) & 2;
}

/* The key of the stack of a thread that asks for memory; false = it is not one of those that are kept. */
bool hkl_quick_key_of(hkl_quick *q, const hkl_asker *asker, hkl_quick_key *key);
/* The frames of that stack; 0 = not met before. */
size_t hkl_quick_get(const hkl_quick *q, const hkl_quick_key *key, uintptr_t *out, size_t room);
/* They are these, of hkl_frames_walk. */
void hkl_quick_put(hkl_quick *q, const hkl_quick_key *key, const uintptr_t *frames, size_t count);

static inline unsigned hkl_quick_code(uintptr_t code)
{
    return (unsigned)((code >> 4 ^ code >> 12) % HKL_QUICK_CODES);
}
/* A block is about to be freed. */
static inline void hkl_quick_freed(hkl_quick *q, const void *block)
{
    const unsigned i = hkl_quick_code((uintptr_t)block);
    if (__builtin_expect(q->codes[i].at != (uintptr_t)block, 1)) return;
    q->codes[i].at = 0;
    q->codes[i].generation++;
}

#endif
#endif

/* Frames of Lua stacks as numbers: what a number stands for is copied when it is first seen, so that it can
 * be told after the function was collected and the state closed. */
#ifndef HKL_PROFILE_FRAMES_H
#define HKL_PROFILE_FRAMES_H

#include "hakmem/lua.h"
#include "profile/thread.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct hkl_frames hkl_frames;

/* At most so many bytes, from malloc. NULL = no memory. */
hkl_frames *hkl_frames_new(size_t most_bytes);
/* From now on at most so many; what is there stays. */
void hkl_frames_bound(hkl_frames *frames, size_t most_bytes);
void hkl_frames_delete(hkl_frames *frames);

/* Numbers have the highest bit, which no address of code has. */
#define HKL_FRAME_BIT ((uintptr_t)1 << (sizeof(uintptr_t) * 8 - 1))

/* The number of a frame that is like this one; its texts are copied. */
uintptr_t hkl_frames_number(hkl_frames *frames, const hak_lua_frame *frame);
/* The frame with that number, until hkl_frames_delete; NULL = it is none. */
const hak_lua_frame *hkl_frames_at(const hkl_frames *frames, uintptr_t number);
/* Whether it is a frame that asking again would not give another name. */
bool hkl_frames_settled(const hkl_frames *frames, uintptr_t number);
/* Of the frames and their texts. */
size_t hkl_frames_bytes(const hkl_frames *frames);

#ifdef HKC_CFI_WALK

/* A thread that asks for memory: `at` are the registers by which it was found, of the runtime's call of
 * lua_Alloc. */
typedef struct hkl_asker {
    lua_State *L;
    const hkc_cfi_registers *at;
    hkl_walk *walk;
} hkl_asker;

/* The stack of a thread: of functions in Lua at most `most`, with those in C between them, the innermost
 * first. Functions that run on a trace have the line of their snapshot, or, where that is not known, are given
 * as the trace. Allocates nothing in the state, and calls
 * nothing that a running allocation could not stand. */
size_t hkl_frames_walk(hkl_frames *frames, const hkl_asker *asker, unsigned most, uintptr_t *out,
                       size_t room);

#endif
#endif

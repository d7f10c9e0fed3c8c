/* The Python instruction that runs in this thread, from the interpreter's own structures: read, without any
 * call of its API that does more than return a pointer. CPython 3.10 to 3.13. */
#ifndef HK_PY_FRAMES_H
#define HK_PY_FRAMES_H

#include "core.h"

#include <string.h>

/* Where fields are, in bytes. */
typedef struct hk_py_layout {
    int version;           /* 0x030b for 3.11 */
    uint16_t thread_frame; /* in the thread state: the frame, or what holds it */
    int16_t holder_frame;  /* the frame in what holds it; -1 = none holds it */
    uint16_t frame_code, frame_instruction, frame_previous;
    uint16_t code_first_line, code_file, code_name, code_lines;
    uint16_t code_body;              /* the instructions; 0 = frames count them instead */
    uint16_t code_stamp;             /* 8 bytes that tell a code object from a dead one at the same address */
    uint16_t text_ascii, text_other; /* in a str: the characters */
    uint16_t name_hash;              /* in the str of a name: its hash; 0 = code_stamp alone tells */
} hk_py_layout;

/* Layout is NULL until frames can be read. */
typedef struct hk_py_frames {
    const hk_py_layout *layout;
    intptr_t thread_offset; /* of the thread state in thread-local memory; 0 = ask the function */
    void *(*thread_state)(void);
} hk_py_frames;

/* An instruction of a code object. */
typedef struct hk_py_place {
    const char *code;
    uintptr_t instruction; /* its address; in 3.10 that of the code object plus its number */
} hk_py_place;

extern hk_py_frames hk_py_frames_ready;

#if defined(__x86_64__) && defined(__linux__)
#define HK_PY_THREAD_REGISTER 1
#endif

/* NULL = frames will be readable once Python is initialized; else why not. */
const char *hk_py_frames_start(void);
/* To be called while hk_py_frames_ready is not set, with the GIL held. */
void hk_py_frames_prepare(void);
/* What became of it: "ready", "waiting", or why frames cannot be read. */
const char *hk_py_frames_state(void);

HK_PY_INLINE void *hk_py_load(const void *p, size_t offset)
{
    void *value;
    memcpy(&value, (const char *)p + offset, sizeof value);
    return value;
}

HK_PY_INLINE uint64_t hk_py_load64(const void *p, size_t offset)
{
    uint64_t value;
    memcpy(&value, (const char *)p + offset, sizeof value);
    return value;
}

/* The place in a frame, which need not be that of Python code (hk_py_place_valid). */
HK_PY_INLINE hk_py_place hk_py_place_of(const hk_py_layout *at, const void *frame)
{
    hk_py_place place = {hk_py_load(frame, at->frame_code), 0};
    uint64_t instruction = hk_py_load64(frame, at->frame_instruction);
    place.instruction =
        at->code_body != 0 ? (uintptr_t)instruction : (uintptr_t)place.code + (uint32_t)instruction;
    return place;
}

HK_PY_INLINE const void *hk_py_thread_state(void)
{
#ifdef HK_PY_THREAD_REGISTER
    if (HK_PY_LIKELY(hk_py_frames_ready.thread_offset != 0)) {
        const void *state;
        __asm__("movq %%fs:(%1), %0" : "=r"(state) : "r"(hk_py_frames_ready.thread_offset));
        return state;
    }
#endif
    return hk_py_frames_ready.thread_state();
}

HK_PY_INLINE const void *hk_py_frame_of(const hk_py_layout *at, const void *thread)
{
    const void *frame = hk_py_load(thread, at->thread_frame);
    if (at->holder_frame >= 0 && HK_PY_LIKELY(frame != NULL))
        frame = hk_py_load(frame, (size_t)at->holder_frame);
    return frame;
}

/* The frame that runs in this thread; NULL = none. Needs hk_py_frames_ready, and the GIL. */
HK_PY_INLINE const void *hk_py_frame_now(void)
{
    const void *thread = hk_py_thread_state();
    return HK_PY_LIKELY(thread != NULL) ? hk_py_frame_of(hk_py_frames_ready.layout, thread) : NULL;
}

/* Whether the place is in Python code. */
bool hk_py_place_valid(const hk_py_place *place);

/* "file" 0 "function" 0 as UTF-8, cut where it does not fit into `size`; the length with both zeros. */
size_t hk_py_place_name(const hk_py_place *place, char *text, size_t size);
int hk_py_place_line(const hk_py_place *place);

#endif

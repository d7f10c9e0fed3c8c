/* The Python instruction that runs in this thread, from the interpreter's own structures: read, without any
 * call of its API that does more than return a pointer. CPython 3.10 to 3.15. */
#ifndef HKP_FRAMES_H
#define HKP_FRAMES_H

#include "base/core.h"
#include "lines/lines.h"

#include <string.h>

/* Where fields are, in bytes. */
typedef struct hkp_layout {
    int version, last;     /* the first one of CPython and the last; 0x030b for 3.11 */
    uint16_t thread_frame; /* in the thread state: the frame, or what holds it */
    int16_t holder_frame;  /* the frame in what holds it; -1 = none holds it */
    uint16_t frame_code, frame_instruction, frame_previous;
    uint16_t code_first_line, code_file, code_name, code_lines;
    uint16_t code_body;              /* the instructions; 0 = frames count them instead */
    uint16_t text_ascii, text_other; /* in a str: the characters */
    /* Calls of the interpreter loop: in the thread state the innermost one, on the C stack, and in a call the
     * one around it; 0 = frames of their own stand for calls. A byte of a frame says that it is the outermost
     * of its call, or stands for it; 0 = each frame has its own call. */
    uint16_t thread_call, call_before, frame_entry;
    uint16_t frame_locals; /* the first local variable */
} hkp_layout;

/* As the headers of each version say (Include/internal/pycore_frame.h and others). Here, so that the hooks
 * have them as constants. */
enum { HKP_3_10, HKP_3_11, HKP_3_12, HKP_3_13, HKP_3_14, HKP_LAYOUTS };
static const hkp_layout hkp_layouts[HKP_LAYOUTS] = {
    {0x030a, 0x030a, 24, -1, 32, 96, 24, 40, 104, 112, 120, 0, 48, 72, 48, 8, 0, 352},
    {0x030b, 0x030b, 56, 8, 32, 56, 48, 72, 112, 128, 136, 184, 48, 72, 56, 16, 68, 72},
    {0x030c, 0x030c, 56, 0, 0, 56, 8, 68, 112, 128, 136, 192, 40, 56, 0, 0, 70, 72},
    {0x030d, 0x030d, 72, -1, 0, 56, 8, 68, 112, 128, 136, 200, 40, 56, 0, 0, 70, 72},
    {0x030e, 0x030f, 72, -1, 0, 56, 8, 68, 112, 128, 136, 208, 40, 56, 0, 0, 74, 80},
};

/* Layout is NULL until frames can be read. Where the state of the running thread is: at an address before
 * 3.12, in thread-local memory from then on; as long as only the function knows, where there is NULL. */
typedef struct hkp_frames {
    intptr_t thread_offset;
    const void *const volatile *thread_address;
    const hkp_layout *layout;
    void *(*thread_state)(void);
    /* The state that belongs to this thread, whether it holds the GIL or not; NULL = it has none. While it
     * runs C code without the GIL its frames stay as they are, and nobody else changes or ends them, but for
     * the end of Python: see hkp_frames_end. */
    void *(*own_state)(void);
} hkp_frames;

/* An instruction of a code object. */
typedef struct hkp_place {
    const char *code;
    intptr_t offset; /* of the instruction, in bytes from the first one; negative before it */
} hkp_place;

extern hkp_frames hkp_frames_ready HKP_HIDDEN;

#if defined(__x86_64__) && defined(__linux__)
#define HKP_THREAD_REGISTER 1
#endif

/* NULL = frames will be readable once Python is initialized; else why not. `dies` is called for each code
 * object before it is gone, with the GIL held. */
const char *hkp_frames_start(void (*dies)(const void *code));
/* To be called while hkp_frames_ready is not set, with the GIL held. True = hkp_key_now knows all that
 * can be known from now on. */
bool hkp_frames_prepare(void);
/* Python ends: states of threads that still run go away, so that from now on frames are read with the GIL
 * only. With the GIL held. */
void hkp_frames_end(void);
/* The state whose frames this thread may read now: that which runs, or that of this thread, which waits for
 * the GIL; NULL = none. gil: whether this thread holds it, as far as that can be told. */
const void *hkp_frames_thread(bool *gil);
/* Which of the layouts it is. */
int hkp_frames_layout(void);
/* What became of it: "ready", "waiting", or why frames cannot be read. */
const char *hkp_frames_state(void);

HKP_INLINE void *hkp_load(const void *p, size_t offset)
{
    void *value;
    memcpy(&value, (const char *)p + offset, sizeof value);
    return value;
}

/* An object that a frame refers to: from 3.14 on the two lowest bits tell how it is counted, and are not part
 * of its address. */
HKP_INLINE const void *hkp_load_reference(const void *p, size_t offset)
{
    const char *value = hkp_load(p, offset);
    return value - ((uintptr_t)value & 3);
}

HKP_INLINE uint64_t hkp_load64(const void *p, size_t offset)
{
    uint64_t value;
    memcpy(&value, (const char *)p + offset, sizeof value);
    return value;
}

/* What stands for an instruction as long as its code object lives: its address, or a hash of 48 bits where
 * frames count them. Even. */
HKP_INLINE uint64_t hkp_number_key(const void *code, uint32_t number)
{
    return ((uintptr_t)code * UINT64_C(0x9e3779b97f4a7c15) + number * UINT64_C(0xd6e8feb86659fd93)) >>
           17 << 1;
}

HKP_INLINE uint64_t hkp_frame_key(const hkp_layout *at, const void *frame)
{
    uint64_t instruction = hkp_load64(frame, at->frame_instruction);
    if (HKP_LIKELY(at->code_body != 0)) return instruction;
    return hkp_number_key(hkp_load(frame, at->frame_code), (uint32_t)instruction);
}

HKP_INLINE const void *hkp_frame_of(const hkp_layout *at, const void *thread)
{
    const void *frame = hkp_load(thread, at->thread_frame);
    /* a thread state has a holder from its first moment on */
    return at->holder_frame >= 0 ? hkp_load(frame, (size_t)at->holder_frame) : frame;
}

/* In thread-local memory. */
HKP_INLINE const void *hkp_thread_local(void)
{
    const void *thread = NULL;
#ifdef HKP_THREAD_REGISTER
    __asm__("movq %%fs:(%1), %0" : "=r"(thread) : "r"(hkp_frames_ready.thread_offset));
#endif
    return thread;
}

/* The key of none. */
#define HKP_NO_KEY (UINT64_MAX - 1)

/* The key of the instruction that `thread` runs. */
HKP_INLINE uint64_t hkp_thread_key(const hkp_layout *at, const void *thread)
{
    const void *frame = HKP_LIKELY(thread) ? hkp_frame_of(at, thread) : NULL;
    return HKP_LIKELY(frame) ? hkp_frame_key(at, frame) : HKP_NO_KEY;
}

/* The same for this thread, by the constants of a layout; HKP_NO_KEY also where it is not known at once. */
HKP_INLINE uint64_t hkp_key_now(int layout)
{
    return hkp_thread_key(&hkp_layouts[layout],
                          layout < HKP_3_12 ? *hkp_frames_ready.thread_address : hkp_thread_local());
}

/* A frame that stands for a call of the interpreter loop on the C stack, from 3.12 on: it has no code. */
HKP_INLINE bool hkp_frame_is_call(const hkp_layout *at, const void *frame)
{
    enum { OWNED_BY_C = 3 /* FRAME_OWNED_BY_CSTACK, from 3.14 on FRAME_OWNED_BY_INTERPRETER */ };
    return at->thread_call == 0 && at->frame_entry != 0 &&
           ((const uint8_t *)frame)[at->frame_entry] == OWNED_BY_C;
}

/* The place in a frame; false = the frame is not of Python code. */
bool hkp_place_of(const void *frame, hkp_place *place);
/* The frame that called; NULL = none. */
const void *hkp_frame_caller(const void *frame);
/* Whether the place is before the body of its function begins: where cells of closures, generators and
 * coroutines are made, for the caller. */
bool hkp_place_before(const hkp_place *place);
/* How many instructions a code object has, of 2 bytes each. */
size_t hkp_code_units(const void *code);

/* A str as UTF-8: at most size bytes, of which the last is 0; "" if the object is none. Returns how many. */
size_t hkp_text_of(const void *string, char *out, size_t size);
/* "file" 0 "function" 0 as UTF-8, cut where it does not fit into `size`. */
void hkp_place_name(const hkp_place *place, char *text, size_t size);
/* walk: for places of the same code object; zero at first. */
int hkp_place_line(const hkp_place *place, hkp_line_walk *walk);

#endif

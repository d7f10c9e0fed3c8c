#include "lines/stack.h"

static unsigned entry_of(const hkp_layout *at, const void *frame)
{
    return at->frame_entry != 0 ? ((const uint8_t *)frame)[at->frame_entry] : 1;
}

static hkp_stack read_frames(const hkp_layout *at, const void *thread, hkp_stack_frame *out, size_t room)
{
    hkp_stack stack = {.count = 0};
    const char *call = at->thread_call != 0 ? hkp_load(thread, at->thread_call) : NULL;
    size_t of_call = 0; /* the first frame of the call that goes on */
    for (const void *frame = hkp_frame_of(at, thread); frame; frame = hkp_frame_caller(frame)) {
        if (hkp_frame_is_call(at, frame)) {
            for (; of_call < stack.count; of_call++)
                out[of_call].call = (uintptr_t)frame;
            continue;
        }
        const int number = hkp_place_in(frame);
        if (number >= 0) {
            if (stack.count == room) {
                stack.more = true;
                stack.outer = NULL;
                break;
            }
            out[stack.count++] = (hkp_stack_frame){(uint32_t)number, frame, (uintptr_t)call};
            stack.outer = frame;
        }
        if (call && entry_of(at, frame) != 0) call = hkp_load(call, at->call_before);
    }
    return stack;
}

hkp_stack hkp_stack_read(hkp_stack_frame *out, size_t room)
{
    bool gil;
    const void *thread = hkp_frames_thread(&gil);
    if (!thread || !(hkp_frames_ready.layout || (gil && hkp_places_ready()))) return (hkp_stack){.gil = gil};
    hkp_stack stack = read_frames(hkp_frames_ready.layout, thread, out, room);
    stack.gil = gil;
    return stack;
}

const void *hkp_stack_first_local(const void *frame)
{
    return hkp_load_reference(frame, hkp_frames_ready.layout->frame_locals);
}

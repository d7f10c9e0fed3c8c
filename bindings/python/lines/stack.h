/* The lines of all Python functions that run in this thread, from the innermost one up. */
#ifndef HKP_STACK_H
#define HKP_STACK_H

#include "lines/places.h"

typedef struct hkp_stack_frame {
    uint32_t number; /* of the line */
    const void *frame;
    uintptr_t call; /* an address on the C stack, in the frame of the interpreter loop that runs it; 0 = not
                       known */
} hkp_stack_frame;

typedef struct hkp_stack {
    size_t count;
    bool gil;          /* this thread holds the GIL */
    bool more;         /* there were more frames than room */
    const void *outer; /* the outermost frame, the last one of all; NULL = there is none, or more */
} hkp_stack;
/* The object in the first local variable of a frame; NULL = none. */
const void *hkp_stack_first_local(const void *frame);

/* Takes no lock but that of new lines, and allocates nothing. */
hkp_stack hkp_stack_read(hkp_stack_frame *out, size_t room);

#endif

/* Traces: what a program asked of malloc, one event each, in windows. */
#ifndef TRACE_H
#define TRACE_H

#include <stddef.h>
#include <stdint.h>

enum { TRACE_ALLOC, TRACE_FREE, TRACE_REALLOC, TRACE_WINDOW /* one ends here */ };

typedef struct trace_event {
    uint32_t slot; /* where the program keeps the block: reused once it is free */
    uint32_t site; /* of the stack that asked; 0 = unknown */
    uint64_t size : 56, op : 8;
} trace_event;

static inline trace_event trace_event_of(unsigned op, size_t slot, size_t size, uint32_t site)
{
    return (trace_event){(uint32_t)slot, site, size & (((uint64_t)1 << 56) - 1), op & 255};
}

typedef struct trace {
    trace_event *events;
    size_t count, slots, windows;
} trace;

/* A workload by name, or a file that record.c wrote, which is cut into windows of `window` events. What is
 * live at the end is freed in its last window. Ends the process with a message if there is none. */
trace trace_get(const char *name, size_t window);

#endif

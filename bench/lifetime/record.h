/* What record.c writes: what a program asked of malloc, one event each, with the places that asked. */
#ifndef RECORD_H
#define RECORD_H

#include <stdint.h>

enum {
    RECORD_ALLOC,
    RECORD_FREE,
    RECORD_FROM,
    RECORD_TO /* a realloc: two events */,
    RECORD_MARK /* a trough */
};
/* A site is known by its innermost frame, by four and by twelve of them. Numbers are hashes that hold from
 * run to run. */
enum { RECORD_DEPTHS = 3, RECORD_FRAMES = 12 };

typedef struct record_event {
    uint64_t address : 56, op : 8;
    uint32_t size;
    uint32_t site[RECORD_DEPTHS];
} record_event;

/* Writes hashes of frames, innermost first, at most `most`; returns how many. 0 = ask the native stack.
 * Called within malloc, so it must not allocate. */
typedef unsigned (*record_frames)(uint32_t *frames, unsigned most);

/* A runtime's plugin says how frames of its language are found. */
void record_set_frames(record_frames frames);

/* FNV-1a. */
static inline uint32_t record_hash(uint32_t h, const void *data, uint64_t n)
{
    for (const unsigned char *p = data; n--; p++)
        h = (h ^ *p) * 16777619u;
    return h;
}

static const uint32_t record_seed = 2166136261u;

#endif

/* The profile of a context as members of its object in a report (report_json.h). The frames of a profile are
 * numbers; who made them names them here, when the report is written. */
#ifndef HKC_PROFILE_JSON_H
#define HKC_PROFILE_JSON_H

#include "common/json.h"

#include <hakmem/profile.h>

typedef struct hkc_frame {
    const char *function, *file; /* NULL = not known; they stay until the next call */
    const char *module;          /* library, package or guest; NULL = not known */
    int line;                    /* 0 = not known */
    bool native;                 /* machine code; else of an interpreter */
    /* Of machine code, for readers that look further: the file that it is from, its build id, and the return
     * address in that file. NULL = not known. A file has one text, so that it is told once. */
    const char *path, *build_id;
    uintptr_t address;
} hkc_frame;

/* What is known of a frame; *out is zero before. */
typedef void hkc_frame_fn(void *user, uintptr_t frame, hkc_frame *out);

/* Members "profile", "stacks", "frames", "marks", "histories" and "verdicts" of the object that is open, a context's.
 * Nothing is written where the context never had a profile. 0 = all was written; ENOMEM = some stacks lack
 * frames. A stack without frames has its site as the only one. */
int hkc_profile_json(hkc_json *w, const hak_ctx *ctx, hkc_frame_fn *name, void *user);

typedef struct hkc_frames hkc_frames;

/* The same for bindings that know more of a stack than the core does. */
typedef struct hkc_profile_writer {
    hkc_frame_fn *name;
    /* What is written of a stack: its frames may be fewer, `label` another one. May not call the context.
     * Returns the thread; NULL = not known. NULL = nothing to add. */
    const char *(*stack)(void *user, hak_profile_stack *stack, const char **label);
    /* Arrays whose elements have frames, between "stacks" and "frames". NULL = none. */
    void (*more)(void *user, hkc_json *w, hkc_frames *frames);
    void *user;
    /* What the stacks have in all, where the context has no blocks of its own: its windows tell the same of their
     * time as resident bytes (common/mapped.h). 0 = it has blocks. */
    size_t touched_bytes;
} hkc_profile_writer;
int hkc_profile_json_by(hkc_json *w, const hak_ctx *ctx, const hkc_profile_writer *by);
/* Members "stacks" and "frames" of what changed from window `from` to window `to`, as hak_profile_diff tells
 * it: live amounts may be negative, which a report may not have. 0 = all was written; ENOMEM; EINVAL = there
 * are no such windows, and nothing was written. */
int hkc_profile_diff_json(hkc_json *w, const hak_ctx *ctx, unsigned from, unsigned to,
                          const hkc_profile_writer *by);

/* The parts of it, for bindings that have stacks of their own: frames get numbers in the order in which they
 * are met, so the array "stacks" comes before "frames". */
struct hkc_frames {
    uintptr_t *keys; /* by number */
    uint32_t *slots; /* a hash table of numbers + 1 */
    size_t count, room;
    bool lost; /* no memory for one */
};

void hkc_frames_open(hkc_frames *frames); /* no memory is taken before the first number */
void hkc_frames_close(hkc_frames *frames);
/* The number of a frame as a value in an array; none without memory. */
void hkc_frames_number_json(hkc_json *w, hkc_frames *frames, uintptr_t frame);
/* The array "frames", and "images" of the files that machine code is from, which are 256 at most. */
void hkc_profile_frames_json(hkc_json *w, const hkc_frames *frames, hkc_frame_fn *name, void *user);

#endif

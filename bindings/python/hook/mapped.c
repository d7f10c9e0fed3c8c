#define _GNU_SOURCE
#include "hook/mapped.h"

#include "common/mapped_calls.h"
#include "heap/heap.h"
#include "hook/say.h"
#include "profile/profile.h"

extern const char __ehdr_start[] HKP_HIDDEN;
extern const char etext[] HKP_HIDDEN;

static size_t frames_of(uintptr_t caller, uintptr_t *frames, size_t room)
{
    return hkp_profile_frames(caller, frames, room);
}

static void tell(const char *line)
{
    hkp_say("hakmem: %s\n", line);
}

bool hkp_mapped_begin(uint64_t window_ns)
{
    const hkc_mapped_options options = {.low = (uintptr_t)__ehdr_start,
                                        .high = (uintptr_t)etext,
                                        .frames = frames_of,
                                        .charge = hkp_limit_charge,
                                        .tell = tell,
                                        .window_ns = window_ns};
    hkp_limit_settles = hkc_mapped_settle;
    return hkc_mapped_begin(&options);
}

void hkp_mapped_parts(hkc_parts *parts)
{
    if (!parts || !hkc_mapped_context()) return;
    hkc_parts_context(parts, hkc_mapped_context());
    hkc_mapped_parts(parts);
}

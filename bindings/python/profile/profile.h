/* Profiles: what memory is for, by stacks of Python lines, with the functions of extensions between them.
 *
 *     base < heap < native, lines < profile < paths < hook < module
 *
 * profile/ starts and stops the profile of the core, gives it the frames of an allocation, and writes what it
 * found. It knows neither who calls the allocator nor when reports are made. */
#ifndef HKP_PROFILE_H
#define HKP_PROFILE_H

#include "base/core.h"

#include <hakmem/profile.h>

typedef struct hkp_profile_options {
    bool exact;
    size_t mean;        /* sampled: bytes to a sample on average; 0 = 512 KiB */
    unsigned depth;     /* most Python functions of a stack; 0 = 64, at most 100 */
    size_t table_bytes; /* most that stacks and samples take; 0 = 16 MiB, exact 1 GiB */
    uint64_t seed;
    uint64_t window_ns; /* windows begin by themselves; 0 = none does */
} hkp_profile_options;

/* "exact", or a mean as hkc_size_parse reads it; "" is a sampled one by default. NULL = it is in *options,
 * else what is wrong with it. */
HKP_API const char *hkp_profile_parse(const char *text, hkp_profile_options *options);

/* Begins a profile, what an earlier one left is forgotten. NULL = it runs, else why not. [any thread] */
const char *hkp_profile_start(const hkp_profile_options *options);
/* 0 = stopped; -1 = none runs. */
int hkp_profile_stop(void);

/* The functions of profile.h of the same name, for the context of the process. [any thread] */
HKP_API int hkp_profile_reset(void);
HKP_API int hkp_profile_mark(const char *name);
HKP_API int hkp_profile_stats(hak_profile_info *info);

/* The stack of this thread, in the form of the profile's: `site` is where the call returns to. room: 4 at least. */
size_t hkp_profile_frames(hak_site site, uintptr_t *frames, size_t room);

/* Python ends: from now on stacks are those of threads that hold the GIL. With the GIL held. */
HKP_API void hkp_profile_end(void);

#endif

/* A copy of a profile: while it is read nothing may be allocated in the context, and a finalizer that runs
 * when Lua allocates may begin another one. */
#ifndef HKL_PROFILE_COPY_H
#define HKL_PROFILE_COPY_H

#include <hakmem/profile.h>

enum { HKL_COPY_NAME = 48 }; /* of a window, as hak_profile_mark keeps it */

typedef struct hkl_copy {
    hak_profile_stack *stacks; /* their frames point into `frames` when hkl_copy_take returns */
    uintptr_t *frames;
    size_t count, room, frame_count, frame_room;
    hak_profile_growth *grown;
    size_t grown_count, grown_room;
    hak_profile_window *marks; /* their names point into `names` */
    char (*names)[HKL_COPY_NAME];
    size_t mark_count;
    bool failed;
} hkl_copy;

/* All stacks, those with most live bytes first, what grew, leaks first, and the windows. false = no memory;
 * hkl_copy_drop in any case. `copy` is zero before. */
bool hkl_copy_take(hkl_copy *copy, const hak_ctx *ctx);
/* Stacks alone, of what changed from the beginning of one window to that of another. *there = false: there
 * are no such windows. */
bool hkl_copy_take_diff(hkl_copy *copy, const hak_ctx *ctx, unsigned from, unsigned to, bool *there);
void hkl_copy_drop(hkl_copy *copy);

#endif

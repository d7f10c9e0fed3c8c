/* A copy of the stacks of a profile: while they are visited nothing may be allocated in the context. */
#ifndef HKL_PROFILE_COPY_H
#define HKL_PROFILE_COPY_H

#include <hakmem/profile.h>

typedef struct hkl_copy {
    hak_profile_stack *stacks; /* their frames point into `frames` when hkl_copy_take returns */
    uintptr_t *frames;
    size_t count, room, frame_count, frame_room;
    bool failed;
} hkl_copy;

/* All stacks, those with most live bytes first. false = no memory; hkl_copy_drop in any case. `copy` is zero
 * before. */
bool hkl_copy_take(hkl_copy *copy, const hak_ctx *ctx);
void hkl_copy_drop(hkl_copy *copy);

#endif

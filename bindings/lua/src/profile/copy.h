/* A copy of the stacks of a profile: while they are visited nothing may be allocated in the context. */
#ifndef HKL_PROFILE_COPY_H
#define HKL_PROFILE_COPY_H

#include <hakmem/profile.h>

typedef struct hkl_copy {
    hak_profile_stack *stacks; /* their frames point into `frames` when hkl_copy_take returns */
    uintptr_t *frames;
    size_t count, room, frame_count, frame_room;
    hak_profile_growth *grown;
    size_t grown_count, grown_room;
    bool failed;
} hkl_copy;

/* All stacks, those with most live bytes first, and what grew, leaks first. false = no memory; hkl_copy_drop
 * in any case. `copy` is zero before. */
bool hkl_copy_take(hkl_copy *copy, const hak_ctx *ctx);
/* The same of what changed from the beginning of one window to that of another, without what grew. *there =
 * false: there are no such windows. */
bool hkl_copy_take_diff(hkl_copy *copy, const hak_ctx *ctx, unsigned from, unsigned to, bool *there);
void hkl_copy_drop(hkl_copy *copy);

#endif

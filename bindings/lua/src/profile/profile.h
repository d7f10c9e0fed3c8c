/* The profile of a Lua state: what the core asks for while it takes samples, and the names of frames. */
#ifndef HKL_PROFILE_PROFILE_H
#define HKL_PROFILE_PROFILE_H

#include "hakmem/lua.h"
#include "profile/frames.h"
#include "profile/quick.h"
#include "profile/thread.h"
#include "state.h"

#include <hakmem/profile.h>

/* A block that grows may move, and its old place be gone, before the core asks for frames. It may be the
 * stack of the thread that is to be walked: of blocks from here on the stack is taken before. */
enum { HKL_PROFILE_MAY_MOVE = 32 << 10 };

struct hkl_profile {
#ifdef HKC_CFI_WALK
    hkc_cfi_registers at; /* exact: of the runtime's call of lua_Alloc that goes on */
    hkl_walk walk;
    hkl_quick quick;
    bool is_quick; /* exact by line, and the runtime's structures are known */
#endif
    hkl_state *st;
    hkl_frames *frames;
    hkl_traces traces;
    unsigned depth;
    bool running, exact;
    hak_site site; /* of the last call of lua_Alloc that allocated */
    size_t held;   /* frames in `hold` that were taken ahead */
    bool holds;
    uintptr_t hold[HAK_PROFILE_DEPTH_MOST];
};

/* Before its state's context goes. NULL is fine. */
void hkl_profile_delete(hkl_profile *profile);

lua_Alloc hkl_profile_alloc_for(const hkl_profile *profile);
bool hkl_profile_is_alloc(lua_Alloc f);

/* Takes the stack now if a block of osize bytes may move as it grows; then hkl_profile_release when it has.
 */
void hkl_profile_hold_now(hkl_profile *profile);
static inline bool hkl_profile_hold(const hkl_state *st, size_t osize)
{
    if (osize < HKL_PROFILE_MAY_MOVE) return false;
    hkl_profile_hold_now(st->profile);
    return true;
}
static inline void hkl_profile_release(const hkl_state *st)
{
    st->profile->holds = false;
}

#endif

/* The profile of a Lua state: what the core asks for while it takes samples, and the names of frames. */
#ifndef HKL_PROFILE_PROFILE_H
#define HKL_PROFILE_PROFILE_H

#include "hakmem/lua.h"
#include "profile/frames.h"
#include "profile/lines.h"
#include "profile/quick.h"
#include "profile/thread.h"
#include "state.h"

#include <hakmem/profile.h>

/* A block that grows may move, and its old place be gone, before the core asks for frames. It may be the
 * stack of the thread that is to be walked: of blocks from here on the stack is taken before. */
enum { HKL_PROFILE_MAY_MOVE = 32 << 10 };

struct hkl_profile {
#ifdef HKC_CFI_WALK
    hkc_cfi_registers at; /* exact, lines: of the runtime's call of lua_Alloc that goes on */
    hkl_walk walk;
    hkl_lines *lines; /* of the last profile, if it was by line; else NULL */
    hkl_quick quick;
    bool is_quick; /* down to the first function in Lua, and the runtime's structures are known */
#endif
    hkl_state *st;
    hkl_frames *frames;
    unsigned depth;
    bool running, registers; /* lua_Alloc notes them in `at` */
    bool turns;              /* runs by line, with windows by the clock, which the core does not look at */
    bool counted;            /* the context's profile is this one's, by line, whether it still runs or not */
    hak_site site;           /* of the last call of lua_Alloc that allocated */
    size_t held;             /* frames in `hold` that were taken ahead */
    bool holds;
    uintptr_t hold[HAK_PROFILE_DEPTH_MOST];
};

/* By line, whether it still runs or not. */
static inline bool hkl_profile_by_line(const hkl_state *st)
{
#ifdef HKC_CFI_WALK
    return st && st->profile && st->profile->lines;
#else
    (void)st;
    return false;
#endif
}

/* After so many bytes of growth the clock is looked at. */
enum { HKL_PROFILE_TURN_BYTES = 64 << 10 };
static inline bool hkl_profile_turns(const hkl_state *st)
{
    return st->profile && st->profile->turns;
}

/* When its Lua state ends: nothing of that is looked at from now on. What was counted stays readable. */
void hkl_profile_end(hkl_profile *profile);
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

#ifdef HKC_CFI_WALK

/* Of a stack, with or without a slot, that was not met with this label. */
unsigned hkl_profile_line_new(hkl_profile *p, int slot, hak_label label, hak_site site);
/* The number of the line that asks for memory, in the middle of lua_Alloc. 0 = not counted. */
static inline unsigned hkl_profile_line(hkl_profile *p, hak_label label, hak_site site)
{
    const int slot = p->is_quick ? hkl_quick_find(&p->quick, &p->at) : -1;
    if (__builtin_expect(slot >= 0, 1)) {
        const uint32_t stack = p->quick.slots[slot].user;
        const hkl_lines_met *met = hkl_lines_met_at(p->lines, stack, label);
        if (__builtin_expect(met->stack == stack && met->label == label && stack != 0, 1)) return met->line;
    }
    return hkl_profile_line_new(p, slot, label, site);
}

#endif

#endif

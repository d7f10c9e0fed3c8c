/* Stacks of machine code, for profiles: frame by frame by rules that are looked up once for each return
 * address. No allocation and no lock; reads nothing that cannot be read, whatever the unwind tables say. */
#ifndef HKC_WALK_H
#define HKC_WALK_H

#include "cfi.h"

#ifdef HKC_CFI_WALK

/* Rules by return address; a slot of which the halves do not match is free. Zero = empty. [any thread] */
enum { HKC_WALK_SLOTS = 8192, HKC_WALK_PROBES = 4 };
typedef struct hkc_walk {
    struct hkc_walk_slot {
        uint64_t key, rule;
    } slots[HKC_WALK_SLOTS];
} hkc_walk;

/* The return addresses from `from` (of hkc_cfi_here) up, the innermost first; of frames in [low, high), the
 * caller's own code, none. Ends where there are no unwind tables, or none that lead up the stack. Returns how
 * many there are. */
size_t hkc_walk_stack(hkc_walk *walk, const hkc_cfi_registers *from, uintptr_t low, uintptr_t high,
                      uintptr_t *frames, size_t room);

/* Writes the return addresses from the frame that returns to `site` up; if that is not among the innermost
 * room + 16, and for site 0, all from the caller of this function up. Returns how many there are, 128 at
 * most. */
size_t hkc_walk_from(hkc_walk *walk, uintptr_t site, uintptr_t *frames, size_t room);

/* The frames from `from` one by one. end: where its part of the stack ends, above; 0 = not known, it is the
 * last one. Return false to stop. */
typedef bool hkc_walk_fn(void *user, uintptr_t pc, uintptr_t end);
void hkc_walk_each(hkc_walk *walk, const hkc_cfi_registers *from, hkc_walk_fn *fn, void *user);

#endif
#endif

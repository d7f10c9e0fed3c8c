/* Which instructions of Python code have which number: the part of the sites that each allocation passes. */
#ifndef HKP_PLACES_H
#define HKP_PLACES_H

#include "lines/frames.h"

#include <stdatomic.h>

/* One word a place: 47 bits of its key, which is even, and 17 of its number. 0 = free. In groups of 8, which
 * hold the instructions of 16 bytes of code and others as far away. */
enum {
    HKP_PLACES = 8192,
    HKP_PLACES_GROUP = 8,
    HKP_NUMBER_BITS = 17,
    HKP_NUMBER_MAX = (1 << HKP_NUMBER_BITS) - 1
};
extern _Atomic uint64_t hkp_places[HKP_PLACES] HKP_HIDDEN;

HKP_INLINE size_t hkp_place_slot(uint64_t key)
{
    return (size_t)(key >> 1) & (HKP_PLACES - 1);
}

/* The word without its number. */
HKP_INLINE uint64_t hkp_place_word(uint64_t key)
{
    return key << (HKP_NUMBER_BITS - 1);
}

/* The number of the place with this key; negative where that is not known at once. */
HKP_INLINE int hkp_place_at(uint64_t key)
{
    uint64_t number =
        atomic_load_explicit(&hkp_places[hkp_place_slot(key)], memory_order_relaxed) ^ hkp_place_word(key);
    return HKP_LIKELY(number <= HKP_NUMBER_MAX) ? (int)number : -1;
}

/* The number of the instruction that runs in this thread, 0 = none; negative where that is not known at once.
 * With the GIL held. */
HKP_INLINE int hkp_place_now(int layout)
{
    return hkp_place_at(hkp_key_now(layout));
}

/* The same, known or not. */
int hkp_place_find(void);

/* The same where this thread may not hold the GIL: the state at the address may be that of another thread
 * before 3.12, and is NULL later. */
HKP_INLINE int hkp_place_raw(int layout)
{
    bool old = layout < HKP_3_12;
    const void *thread = old ? *hkp_frames_ready.thread_address : hkp_thread_local();
    if (HKP_UNLIKELY(!thread)) return -1;
    if (old) thread = hkp_frames_ready.own_state();
    return hkp_place_at(hkp_thread_key(&hkp_layouts[layout], thread));
}
int hkp_place_find_raw(void);

/* The number of the place in a frame, known or not; -1 = the frame is of no Python code, or its body has not
 * begun. */
int hkp_place_in(const void *frame);

/* Frames can be read from now on, if that can be known. With the GIL held. */
bool hkp_places_ready(void);

/* Whether it is known at once that where there is no frame to read there is no number: as long as Python is
 * awaited, and when its frames can be read at once or never. */
void hkp_places_none(bool known);

/* Who gives a place its number when it is met for the first time. Before the hooks are installed. */
void hkp_places_start(uint32_t (*number)(const hkp_place *place));

/* The code object dies: its instructions have no numbers any more. */
void hkp_places_forget(const void *code);

#endif

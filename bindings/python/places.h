/* Which instructions of Python code have which number: the part of the sites that each allocation passes. */
#ifndef HK_PY_PLACES_H
#define HK_PY_PLACES_H

#include "frames.h"

#include <stdatomic.h>

/* One word a place: 47 bits of its key, which is even, and 17 of its number. 0 = free. In groups of 8, which
 * hold the instructions of 16 bytes of code and others as far away. */
enum {
    HK_PY_PLACES = 8192,
    HK_PY_PLACES_GROUP = 8,
    HK_PY_NUMBER_BITS = 17,
    HK_PY_NUMBER_MAX = (1 << HK_PY_NUMBER_BITS) - 1
};
extern _Atomic uint64_t hk_py_places[HK_PY_PLACES] HK_PY_HIDDEN;

HK_PY_INLINE size_t hk_py_place_slot(uint64_t key)
{
    return (size_t)(key >> 1) & (HK_PY_PLACES - 1);
}

/* The word without its number. */
HK_PY_INLINE uint64_t hk_py_place_word(uint64_t key)
{
    return key << (HK_PY_NUMBER_BITS - 1);
}

/* The number of the instruction that runs in this thread, 0 = none; negative where that is not known at once.
 * With the GIL held. */
HK_PY_INLINE int hk_py_place_now(int layout)
{
    uint64_t key = hk_py_key_now(layout);
    uint64_t number = atomic_load_explicit(&hk_py_places[hk_py_place_slot(key)], memory_order_relaxed) ^
                      hk_py_place_word(key);
    return HK_PY_LIKELY(number <= HK_PY_NUMBER_MAX) ? (int)number : -1;
}

/* The same, known or not. */
int hk_py_place_find(void);

/* Whether it is known at once that where there is no frame to read there is no number: as long as Python is
 * awaited, and when its frames can be read at once or never. */
void hk_py_places_none(bool known);

/* The code object dies: its instructions have no numbers any more. */
void hk_py_places_forget(const void *code);

#endif

/* Frames of one size: whose caller's frame is always as far away. */
#ifndef HKP_FIXED_H
#define HKP_FIXED_H

#include <stdbool.h>
#include <stdint.h>

/* Whether the function that the return address pc is in moves its stack by constants only, as far as code of
 * CPython's image tells. A function with alloca does not. On x86-64 alone. */
bool hkp_frame_is_fixed(uintptr_t pc);

#endif

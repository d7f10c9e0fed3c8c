/* What a terminal would not show but do. */
#ifndef HKC_CONTROL_H
#define HKC_CONTROL_H

#include <stddef.h>

/* Returns how many of the n bytes are a control character: below a blank, DEL, and C2 80 to C2 9F, the same again in
 * UTF-8. 0 = none begins there. n is not 0. */
static inline size_t hkc_control(const char *at, size_t n)
{
    const unsigned char c = (unsigned char)*at;
    if (c < 0x20 || c == 0x7F) return 1;
    return c == 0xC2 && n > 1 && ((unsigned char)at[1] & 0xE0) == 0x80 ? 2 : 0;
}

#endif

/* The lines of one function of the standard library, by their numbers, of which one learns as they are met. */
#ifndef HKP_KNOWN_H
#define HKP_KNOWN_H

#include "base/core.h"

enum { HKP_KNOWN_LINES = 16 };

typedef struct hkp_known {
    const char *function, *file; /* what their names end with */
    uint32_t lines[HKP_KNOWN_LINES], count;
    uint32_t seen; /* so many lines of all were looked at */
} hkp_known;

/* Whether the line is one of the function's. With the GIL of the main interpreter. */
bool hkp_known_has(hkp_known *known, uint32_t number);
/* Whether a text ends with another. */
bool hkp_known_ends(const char *text, const char *end);

#endif

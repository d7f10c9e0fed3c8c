/* Which part of CPython the code of its image belongs to: ranges of addresses, since functions of one part
 * lie together for the most part. */
#ifndef HKP_PARTS_H
#define HKP_PARTS_H

#include "image.h"
#include "native/subsystem.h"
#include "symbols.h"

typedef struct hkp_parts {
    uint32_t *starts; /* in order, counted from the image's lowest address; each ends where the next begins */
    unsigned char *subsystems; /* hkp_subsystem or HKP_UNKNOWN */
    size_t count;
} hkp_parts;

/* Looks at all functions at once. code: an address in the code of the image. The result is by what names, and
 * there may be no parts. */
hkc_symbols_source hkp_parts_find(hkp_parts *parts, const hkc_image *core, uintptr_t code);

/* at: counted from the image's lowest address. */
static inline unsigned char hkp_part_at(const hkp_parts *parts, size_t at)
{
    size_t low = 0, count = parts->count;
    while (count > 0) {
        size_t half = count / 2;
        if (parts->starts[low + half] <= at) {
            low += half + 1;
            count -= half + 1;
        } else {
            count = half;
        }
    }
    return low > 0 ? parts->subsystems[low - 1] : (unsigned char)HKP_UNKNOWN;
}

#endif

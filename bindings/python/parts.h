/* Which part of CPython the code of its image belongs to: ranges of addresses, since functions of one part
 * lie together for the most part. */
#ifndef HK_PY_PARTS_H
#define HK_PY_PARTS_H

#include "image.h"
#include "symbols.h"

/* Of a function, in place of its hk_py_subsystem. */
enum { HK_PY_UNKNOWN = 0xff };

typedef struct hk_py_parts {
    uint32_t *starts; /* in order, counted from the image's lowest address; each ends where the next begins */
    unsigned char *subsystems; /* hk_py_subsystem or HK_PY_UNKNOWN */
    size_t count;
} hk_py_parts;

/* Looks at all functions at once. code: an address in the code of the image. The result is by what names, and
 * there may be no parts. */
hk_symbols_source hk_py_parts_find(hk_py_parts *parts, const hk_image *core, uintptr_t code);

/* at: counted from the image's lowest address. */
static inline unsigned char hk_py_part_at(const hk_py_parts *parts, size_t at)
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
    return low > 0 ? parts->subsystems[low - 1] : (unsigned char)HK_PY_UNKNOWN;
}

#endif

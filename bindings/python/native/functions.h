/* The functions of CPython's image, numbered by their addresses, while it is found out to which part of
 * CPython each belongs. */
#ifndef HKP_FUNCTIONS_H
#define HKP_FUNCTIONS_H

#include <stddef.h>
#include <stdint.h>

enum { HKP_FUNCTIONS_NEAR = 256 };

typedef struct hkp_functions {
    uintptr_t *starts; /* in order */
    size_t count;
    uint32_t *near; /* number of the first function at or behind every so many bytes */
    size_t near_count;
} hkp_functions;

/* Those of the image with code at pc; none without memory. */
void hkp_functions_open(hkp_functions *functions, uintptr_t pc);
void hkp_functions_close(hkp_functions *functions);

/* Of the function that begins there; count = none does. */
static inline size_t hkp_functions_number(const hkp_functions *f, uintptr_t start)
{
    if (f->count == 0 || start - f->starts[0] > f->starts[f->count - 1] - f->starts[0]) return f->count;
    size_t i = f->near[(start - f->starts[0]) / HKP_FUNCTIONS_NEAR];
    while (f->starts[i] < start)
        i++;
    return f->starts[i] == start ? i : f->count;
}

#endif

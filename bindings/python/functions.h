/* The functions of CPython's image, numbered by their addresses, while it is found out to which part of
 * CPython each belongs. */
#ifndef HK_PY_FUNCTIONS_H
#define HK_PY_FUNCTIONS_H

#include "parts.h"
#include "subsystem.h"

#include <stddef.h>
#include <stdint.h>

enum { HK_PY_FUNCTIONS_NEAR = 256 };

typedef struct hk_py_functions {
    uintptr_t *starts; /* in order */
    size_t count;
    uint32_t *near; /* number of the first function at or behind every so many bytes */
    size_t near_count;
} hk_py_functions;

/* Those of the image with code at pc; none without memory. */
void hk_py_functions_open(hk_py_functions *functions, uintptr_t pc);
void hk_py_functions_close(hk_py_functions *functions);

/* Of the function that begins there; count = none does. */
static inline size_t hk_py_functions_number(const hk_py_functions *f, uintptr_t start)
{
    if (f->count == 0 || start - f->starts[0] > f->starts[f->count - 1] - f->starts[0]) return f->count;
    size_t i = f->near[(start - f->starts[0]) / HK_PY_FUNCTIONS_NEAR];
    while (f->starts[i] < start)
        i++;
    return f->starts[i] == start ? i : f->count;
}

#endif

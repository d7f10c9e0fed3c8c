/* Functions of a stripped CPython that have no name: many stand in its tables of types and modules, which say
 * what they are for, and most others are called from one part of CPython only (learn_calls.h). */
#ifndef HK_PY_LEARN_H
#define HK_PY_LEARN_H

#include "image.h"
#include "map.h"
#include "subsystem.h"
#include "symbols.h"

typedef struct hk_py_learnt {
    hk_py_map subsystems; /* by address of the function */
} hk_py_learnt;

/* Reads the data of CPython's image, where it is before Python starts. type_type: address of PyType_Type. */
void hk_py_learn(hk_py_learnt *learnt, const hk_image *core, const hk_symbols *symbols,
                 const void *type_type);
/* CORE = not known. */
hk_py_subsystem hk_py_learnt_find(const hk_py_learnt *learnt, uintptr_t function);

#endif

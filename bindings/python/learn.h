/* Functions of a stripped CPython that have no name: many stand in its tables of types and modules, which say
 * what they are for, and most others are called from one part of CPython only (learn_calls.h). */
#ifndef HK_PY_LEARN_H
#define HK_PY_LEARN_H

#include "functions.h"
#include "image.h"

/* `subsystems` has an hk_py_subsystem for each function that has a name, and HK_PY_UNKNOWN for the others,
 * for which it gets what is found. Reads the data of CPython's image, where it is before Python starts.
 * type_type: address of PyType_Type. */
void hk_py_learn(const hk_image *core, const hk_py_functions *functions, const hk_py_words *words,
                 unsigned char *subsystems, const void *type_type);

#endif

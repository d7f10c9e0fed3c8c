/* Functions of a stripped CPython that have no name: many stand in its tables of types and modules, which say
 * what they are for, and most others are called from one part of CPython only (learn_calls.h). */
#ifndef HKP_LEARN_H
#define HKP_LEARN_H

#include "image.h"
#include "native/functions.h"
#include "native/subsystem.h"

/* `subsystems` has an hkp_subsystem for each function that has a name, and HKP_UNKNOWN for the others,
 * for which it gets what is found. Reads the data of CPython's image, where it is before Python starts.
 * type_type: address of PyType_Type. */
void hkp_learn(const hkc_image *core, const hkp_functions *functions, const hkp_words *words,
               unsigned char *subsystems, const void *type_type);

#endif

/* Functions of a stripped CPython that are in no table: most are called by functions of their own part only.
 */
#ifndef HK_PY_LEARN_CALLS_H
#define HK_PY_LEARN_CALLS_H

#include "functions.h"
#include "image.h"

#include <stdbool.h>

/* What is known of each function: an hk_py_subsystem or HK_PY_UNKNOWN. Fills in what it can. The code is read
 * from the image's file: pages of code that the program does not run are to stay out of its memory. False =
 * it cannot be read. */
bool hk_py_learn_calls(const hk_image *core, const hk_py_functions *functions, unsigned char *subsystems);

#endif

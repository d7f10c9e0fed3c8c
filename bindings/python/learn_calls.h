/* Functions of a stripped CPython that are in no table: most are called by functions of their own part only.
 */
#ifndef HK_PY_LEARN_CALLS_H
#define HK_PY_LEARN_CALLS_H

#include "image.h"
#include "subsystem.h"

#include <stdbool.h>

enum { HK_PY_UNKNOWN = 0xff };

/* Functions in the order of their addresses, and what is known of each: an hk_py_subsystem or HK_PY_UNKNOWN.
 * Fills in what it can. The code is read from the image's file: pages of code that the program does not run
 * are to stay out of its memory. False = it cannot be read. */
bool hk_py_learn_calls(const hk_image *core, const uintptr_t *starts, unsigned char *subsystems,
                       size_t count);

#endif

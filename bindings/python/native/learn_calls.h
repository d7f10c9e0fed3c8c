/* Functions of a stripped CPython that are in no table: most are called by functions of their own part only.
 */
#ifndef HKP_LEARN_CALLS_H
#define HKP_LEARN_CALLS_H

#include "image.h"
#include "native/functions.h"
#include "native/subsystem.h"

#include <stdbool.h>

/* What is known of each function: an hkp_subsystem or HKP_UNKNOWN. Fills in what it can. The code is read
 * from the image's file: pages of code that the program does not run are to stay out of its memory. False =
 * it cannot be read. */
bool hkp_learn_calls(const hkc_image *core, const hkp_functions *functions, unsigned char *subsystems);

#endif

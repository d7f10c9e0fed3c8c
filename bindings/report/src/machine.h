/* Machine code in reports: names as they stand in the source, and lines with the functions that were inlined
 * there. */
#ifndef HKR_MACHINE_H
#define HKR_MACHINE_H

#include "names.h"

#include <jansson.h>
#include <stdbool.h>

/* Changes the stacks and frames of a context, as it was read. What is not as the format says is left alone.
 * Lines are read from files that the frames' images name, if they still have the same build id, and from what
 * is installed of debug information for them. What was read stays for the next report. True = something was
 * changed. */
bool hkr_machine(json_t *context, hkr_names *names);

#endif

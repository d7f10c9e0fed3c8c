/* Reads the options of a context. */
#ifndef HK_OPTIONS_H
#define HK_OPTIONS_H

#include "heap/ctx.h"

/* Copies options of any version; `given` NULL stands for the defaults. Returns what is wrong with them; NULL
 * = nothing, and then o->tuning has all numbers (it is t or a constant) and *said a bit for each that was
 * given. */
const char *hk_options_read(hak_options *o, hak_tuning *t, uint32_t *said, const hak_options *given);

#endif

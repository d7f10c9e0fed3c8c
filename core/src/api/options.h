#ifndef HK_OPTIONS_H
#define HK_OPTIONS_H

#include "heap/ctx.h"

/* Copies options of any version, which may be NULL; what is wrong with them, NULL = nothing. o->tuning
 * is *t or a constant then, with all numbers; *said has a bit for each that was given. */
const char *hk_options_read(hak_options *o, hak_tuning *t, uint32_t *said, const hak_options *given);

#endif

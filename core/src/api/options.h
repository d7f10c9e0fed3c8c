/* Reads the options of a context. */
#ifndef HK_OPTIONS_H
#define HK_OPTIONS_H

#include "heap/ctx.h"

/* Copies options of any version; `host` NULL stands for the defaults. Returns what is wrong with them; NULL
 * = nothing, and then o->tuning has all settings (it is t or a constant) and *given a bit for each that the
 * host gave. */
const char *hk_options_read(hak_options *o, hak_tuning *t, uint32_t *given, const hak_options *host);

#endif

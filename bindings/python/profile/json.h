/* The profile in the JSON report. */
#ifndef HKP_PROFILE_JSON_H
#define HKP_PROFILE_JSON_H

#include "common/profile_json.h"

/* Members of the open context: the profile if there is one, and what the provider knows of lines. Without a
 * profile these are the stacks. */
void hkp_profile_json(hkc_json *w);
/* The context of what C code maps for itself; nothing where it maps nothing. After hkc_mapped_measure. */
void hkp_mapped_json(hkc_json *w);
/* An object with what changed between two windows, see hkc_profile_diff_json(). */
int hkp_profile_diff_json(hkc_json *w, unsigned from, unsigned to);

#endif

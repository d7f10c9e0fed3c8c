/* Memory that C code maps for itself, past malloc: counted, in reports, and under the limit. */
#ifndef HKP_MAPPED_H
#define HKP_MAPPED_H

#include "common/parts.h"

#include <stdbool.h>
#include <stdint.h>

/* From now on. window_ns: of the profile; 0 = no windows. false = there is no memory for that. */
bool hkp_mapped_begin(uint64_t window_ns);
/* What was touched, into the parts, before their list is made. */
void hkp_mapped_parts(hkc_parts *parts);

#endif

/* Memory that C code maps for itself, past malloc: counted, in reports, and under the limit. */
#ifndef HKP_MAPPED_H
#define HKP_MAPPED_H

#include "common/parts.h"

#include <stdbool.h>

/* From now on. false = there is no memory for that. */
bool hkp_mapped_begin(void);
/* What was touched, into the parts, before their list is made. */
void hkp_mapped_parts(hkc_parts *parts);

#endif

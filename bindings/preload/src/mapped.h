/* Memory that the program and its libraries map for themselves: counted, in reports and profiles, and under the
 * limit. */
#ifndef HKS_PRELOAD_MAPPED_H
#define HKS_PRELOAD_MAPPED_H

#include "common/mapped.h"

/* If the settings ask for what it is needed for. */
void hks_mapped_begin(void);

#endif

/* Names by number, of which there are few: threads and tasks, many of which may have one name one after the
 * other. Kept for the life of the process. */
#ifndef HKP_FEW_H
#define HKP_FEW_H

#include "base/core.h"

enum { HKP_FEW = 256, HKP_FEW_BYTES = 64 };

typedef struct hkp_few {
    const char *others; /* what number 0 is called: those that came when there was no room */
    char (*names)[HKP_FEW_BYTES];
    uint32_t count;
} hkp_few;

/* The number of a name, of which 63 bytes count. [any thread] */
uint32_t hkp_few_number(hkp_few *few, const char *name);
/* NULL = there is none. */
const char *hkp_few_name(const hkp_few *few, uint32_t number);

#endif

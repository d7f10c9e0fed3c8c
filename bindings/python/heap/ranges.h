/* The address space that the context has, noted when it is reserved. */
#ifndef HKP_RANGES_H
#define HKP_RANGES_H

#include "base/core.h"

/* The pages of the operating system, noting what is reserved. For one space. */
const hak_os *hkp_noted_os(void);
/* Neighbouring mappings of others may have become one with ours: the bytes from start to end that are ours.
 */
size_t hkp_ranges_inside(uintptr_t start, uintptr_t end);

#endif

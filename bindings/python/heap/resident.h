/* Which resident memory of the process is hakmem's: the address space that the context has is looked up in
 * what the kernel tells of each mapping. */
#ifndef HKP_RESIDENT_H
#define HKP_RESIDENT_H

#include "base/core.h"
#include "common/parts.h"

/* Resident bytes of the process; 0 = unknown. */
HKP_API size_t hkp_resident(void);
/* Those that are hakmem's. Reads /proc/self/smaps: about a millisecond, and more for many mappings. */
HKP_API size_t hkp_resident_ours(void);
/* Counts them as hakmem's in the parts, which may be NULL. */
void hkp_resident_take(hkc_parts *parts, size_t retained);
/* Those that are neither hakmem's nor a file's nor the main stack: what C code maps itself and has from
 * malloc. Costs the same. */
size_t hkp_resident_past(void);
/* The most so far of what is no file's, without those pages of files that are resident now. */
size_t hkp_resident_anonymous_peak(void);

#endif

/* Which resident memory of the process is hakmem's: the address space that the context has is noted when it
 * is reserved, and looked up in what the kernel tells of each mapping. */
#ifndef HK_PY_RESIDENT_H
#define HK_PY_RESIDENT_H

#include "core.h"

/* The pages of the operating system, noting what is reserved. For one space. */
const hak_os *hk_py_noted_os(void);

/* Resident bytes of the process; 0 = unknown. */
HK_PY_API size_t hk_py_resident(void);
/* Those that are hakmem's. Reads /proc/self/smaps: about a millisecond, and more for many mappings. */
HK_PY_API size_t hk_py_resident_ours(void);

#endif

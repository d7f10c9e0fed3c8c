/* Hooks that only count and pass on to the allocator that was there: where replacing is not allowed. */
#ifndef HKP_WRAP_H
#define HKP_WRAP_H

#include "base/core.h"

typedef struct hkp_wrap_count {
    uint64_t allocations, frees, bytes; /* bytes asked for, of all allocations so far */
} hkp_wrap_count;

extern const hkp_allocator hkp_wrappers[3];
/* How many allocations of this thread came to any of them: whether a hook on top passes them on. */
unsigned hkp_wrap_calls(void);
HKP_API void hkp_wrap_counts(hkp_domain domain, hkp_wrap_count *out);

#endif

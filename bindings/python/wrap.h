/* Hooks that only count and pass on to the allocator that was there: where replacing is not allowed. */
#ifndef HK_PY_WRAP_H
#define HK_PY_WRAP_H

#include "core.h"

typedef struct hk_py_wrap_count {
    uint64_t allocations, frees, bytes; /* bytes asked for, of all allocations so far */
} hk_py_wrap_count;

extern const hk_py_allocator hk_py_wrappers[3];
/* How many allocations of this thread came to any of them: whether a hook on top passes them on. */
unsigned hk_py_wrap_calls(void);
HK_PY_API void hk_py_wrap_counts(hk_py_domain domain, hk_py_wrap_count *out);

#endif

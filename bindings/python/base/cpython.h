/* The interpreter in this process, by name: the hook is loaded into any process, with a Python or not. */
#ifndef HKP_PYTHON_H
#define HKP_PYTHON_H

#include "base/core.h"

typedef struct hkp_python {
    void (*get_allocator)(int domain, hkp_allocator *out);
    void (*set_allocator)(int domain, hkp_allocator *in);
    void (*get_arena_allocator)(hkp_arena_allocator *out);
    void (*set_arena_allocator)(hkp_arena_allocator *in);
    void *(*object_malloc)(size_t n);
    int (*is_initialized)(void);
    const char *(*get_version)(void);
    int (*add_pending_call)(int (*fn)(void *), void *arg);
    int version;         /* 0x030b for 3.11 */
    bool free_threading; /* a build without the GIL */
} hkp_python;

/* NULL = no CPython here, or one before 3.10. Looked for again until it is found. [any thread] */
const hkp_python *hkp_python_find(void);

/* An object or a function of the interpreter; `function` points to a function pointer. false = not there. */
void *hkp_symbol(const char *name);
bool hkp_function(const char *name, void *function);

#endif

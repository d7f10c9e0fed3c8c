#ifndef HKL_ADOPT_H
#define HKL_ADOPT_H

#include <lua.h>

#include <stdbool.h>
#include <stddef.h>

typedef struct hkl_adoption {
    bool shared;    /* the context is for all threads */
    bool has_limit; /* `limit` was given; 0 = none */
    size_t limit;
} hkl_adoption;

/* Puts a running state under hakmem, with labels where they are to be had. Blocks that it has already
 * stay with the old allocator until they are freed or grow. An allocator that is not the runtime's own may
 * limit the state, and that limit ends: so the new one must be given then. NULL = done; else what is in the
 * way. */
const char *hkl_adopt(lua_State *L, const hkl_adoption *how);

#endif

#ifndef HKL_ADOPT_H
#define HKL_ADOPT_H

#include <lua.h>

/* Puts a running state under hakmem, with labels where they are to be had. Blocks that it has already
 * stay with the old allocator until they are freed or grow. NULL = done; else what is in the way. */
const char *hkl_adopt(lua_State *L);

#endif

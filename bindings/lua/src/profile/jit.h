/* The lines at which LuaJIT's traces begin, told by its compiler. */
#ifndef HKL_PROFILE_JIT_H
#define HKL_PROFILE_JIT_H

#include <lua.h>

/* From now on, in a state with a profile; a handler of others for these events is called as well. Nothing on
 * other runtimes. Without memory, or where the library jit is not open, traces keep the line of their
 * function. */
void hkl_jit_listen(lua_State *L);
void hkl_jit_leave(lua_State *L);

#endif

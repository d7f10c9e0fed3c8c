/* hakmem.profile of the Lua module. */
#ifndef HKL_PROFILE_MODULE_H
#define HKL_PROFILE_MODULE_H

#include <lua.h>

/* Pushes the table. */
void hkl_profile_push_module(lua_State *L);

#endif

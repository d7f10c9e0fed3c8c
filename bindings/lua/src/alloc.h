/* The lua_Alloc functions of the binding, and which of them a state needs. */
#ifndef HK_LUA_ALLOC_H
#define HK_LUA_ALLOC_H

#include "state.h"

/* The cheapest function that does all that st needs: labels, foreign blocks and limits cost only where
 * they are in use. */
lua_Alloc hk_lua_alloc_for(const hk_lua_state *st);

/* Whether ud of this function is a hk_lua_state. */
bool hk_lua_alloc_has_state(lua_Alloc f);

#endif

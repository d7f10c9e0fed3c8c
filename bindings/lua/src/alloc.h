/* The lua_Alloc functions of the binding, and which of them a state needs. */
#ifndef HKL_ALLOC_H
#define HKL_ALLOC_H

#include "state.h"

/* The cheapest function that does all that st needs: labels, foreign blocks and limits cost only where
 * they are in use. */
lua_Alloc hkl_alloc_for(const hkl_state *st);

/* Whether ud of this function is a hkl_state. */
bool hkl_alloc_has_state(lua_Alloc f);

#endif

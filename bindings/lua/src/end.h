/* How a state that hakmem made ends: its context is destroyed as a whole, so what lua_close frees one by one
 * need not be freed. The first object of the state with a finalizer is one of the binding's. Lua calls
 * finalizers in the reverse order of their making, so that one runs last, and the lua_Alloc that it installs
 * only waits for the last block.
 *
 * The frees stay where somebody could miss them: in contexts that are shared, have a debug option or a
 * profile, where other states live, and under a lua_Alloc of the host's. They come back when something is
 * allocated afterwards: LuaJIT goes on with objects that finalizers made. */
#ifndef HKL_END_H
#define HKL_END_H

#include "state.h"

/* Makes that object in a new state, whose first one with a finalizer it has to be. Without memory for it
 * there is none, and the state ends block by block. */
void hkl_end_prepare(lua_State *L);

/* The lua_Alloc after that finalizer; ud is the hkl_state. */
void *hkl_end_alloc(void *ud, void *ptr, size_t osize, size_t nsize);

#endif

/* Limits while lua_close runs. A finalizer that fails there for want of memory leaves its work undone; 5.2
 * and 5.3 also leave its error on the stack, and write behind the end of a stack that cannot grow. So the
 * hard limit of a state rises at the first refusal under lua_close, once. */
#ifndef HKL_CLOSE_H
#define HKL_CLOSE_H

#include "state.h"

/* Closes a scratch state to learn what lua_close looks like on the machine's stack, and a finalizer in
 * lua_State. Constant, after the first call of a process. */
void hkl_close_learn(void);

/* Whether a finalizer runs: in PUC Lua in the main thread, where lua_close runs all of them. Lua keeps its
 * collector from running meanwhile. One that is started again in lua_close of LuaJIT and 5.1 loses its place
 * among the objects, which are set aside there, and the process ends with a signal; that of 5.2 and 5.3 calls
 * finalizers from finalizers, until these fail. */
bool hkl_finalizes(const hkl_state *st);

/* As hkl_refused. Returns the block if this is lua_close of the state of st, and the limit was in the way. */
void *hkl_close_block(hkl_state *st, void *ptr, size_t osize, size_t nsize, hak_label label, hak_site site);

#endif

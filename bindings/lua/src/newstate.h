/* How lua_newstate asks for its first block, which tells whoever makes a state; and which thread runs. */
#ifndef HKL_NEWSTATE_H
#define HKL_NEWSTATE_H

#include <hakmem/hakmem.h>

#include <lua.h>

/* lua_newstate; 5.5 wants a seed for the hashes of strings. */
#if LUA_VERSION_NUM >= 505
#define HKL_NEW_STATE(f, ud) lua_newstate(f, ud, luaL_makeseed(NULL))
#else
#define HKL_NEW_STATE(f, ud) lua_newstate(f, ud)
#endif

/* Learns it. Constant, after the first call of a process. */
void hkl_newstate_learn(void);
/* The place in the runtime from which it does. */
uintptr_t hkl_newstate_caller(void);
/* Whether lua_newstate asks for its first block, of this size and from this place. */
bool hkl_newstate_asks(size_t nsize, hak_site caller);
/* Tells the thread that runs from all others that live. */
uintptr_t hkl_thread_now(void);

#endif

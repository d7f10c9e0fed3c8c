#include "newstate.h"

#include <lauxlib.h>

#include <pthread.h>

/* The first request of lua_newstate, which is its own: the size, and the place in it that calls lua_Alloc. No
 * other call comes from there. */
static struct {
    size_t size;
    hak_site caller;
} newstate;

/* lua_newstate gives up when its first request is refused. */
static void *note_first(void *ud, void *ptr, size_t osize, size_t nsize)
{
    (void)ud;
    (void)ptr;
    (void)osize;
    if (nsize == 0) return NULL;
    newstate.size = nsize;
    newstate.caller = HAK_CALLSITE();
    return NULL;
}

static void learn(void)
{
    lua_State *L = HKL_NEW_STATE(note_first, NULL);
    if (L) lua_close(L);
}

void hkl_newstate_learn(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, learn);
}

uintptr_t hkl_newstate_caller(void)
{
    hkl_newstate_learn();
    return newstate.caller;
}

uintptr_t hkl_thread_now(void)
{
    static _Thread_local char here;
    return (uintptr_t)&here;
}

bool hkl_newstate_asks(size_t nsize, hak_site caller)
{
    return nsize == newstate.size && caller == newstate.caller;
}

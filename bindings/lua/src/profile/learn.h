/* Operations in a scratch state of which the running thread is known, for hkl_thread_learn. */
#ifndef HKL_PROFILE_LEARN_H
#define HKL_PROFILE_LEARN_H

#include <lua.h>

#include <stdbool.h>
#include <stddef.h>

/* What the operations tell the scratch state's lua_Alloc. */
typedef struct hkl_learner {
    lua_State *running; /* who allocates; NULL = not known */
    bool refuse;        /* the next growth fails once */
    int exercised;      /* how often, while stepping */
    bool stepping;      /* the lines of the last chunk run */
    bool hooks;         /* then with a hook for each instruction */
} hkl_learner;

/* Runs them all; an lua_CFunction with the hkl_learner as a light userdata. */
int hkl_learn_run(lua_State *L);

#endif

/* Finalizers where compiled code of LuaJIT is left. Before 2.1's releases by date, an error in a finalizer is one of
 * who runs the collector, and where a trace is left for the collector's sake nothing catches errors: the process ends
 * with a signal. A finalizer that is refused memory raises such an error. So under a limit no finalizer runs there: the
 * collector's steps that could come to one are taken by interpreted code, where errors are caught as any other. */
#ifndef HKL_LEAVE_H
#define HKL_LEAVE_H

#include "state.h"

#include <stdbool.h>
#include <stdint.h>

/* Of the runtime's numbers, after hkl_leave_learn: what the collector keeps of itself, from the beginning of what all
 * threads share; 0 = errors in finalizers are told and no more, or nothing is known. */
extern uint16_t hkl_leave_gc_at;

/* Once in a process, after hkl_trace_learn. */
void hkl_leave_learn(void);
/* Makes the state ready for the functions below. false = no memory. */
bool hkl_leave_prepare(lua_State *L);
/* Whether the collector's next step may come to a finalizer, once `bytes` more are in use. */
bool hkl_leave_is_near(const lua_State *L, size_t bytes);
/* lua_gc(L, what, 0), and all finalizers that wait then. The first error that one of them raises is raised when all
 * have run: one that waited longer might run where compiled code is left. From interpreted code. */
void hkl_leave_collect(lua_State *L, int what);

#endif

/* Looking at a state while it runs. */
#ifndef HKL_PROFILE_LIVE_H
#define HKL_PROFILE_LIVE_H

#include "common/json.h"

#include <lua.h>

#include <stdbool.h>

/* The lua_Alloc that writes a report when somebody looks; its ud is a hkl_state. */
bool hkl_live_is_alloc(lua_Alloc f);
/* json.c: the report of the state. 0, or errno. */
int hkl_report_json(lua_State *L, hkc_json *w);

#endif

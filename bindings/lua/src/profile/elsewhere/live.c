/* Nobody can look at a state while it runs on macOS and on Windows, as common/elsewhere/live.c says. */
#include "profile/live.h"

#include "common/live.h"
#include "hakmem/lua.h"

#include <stdio.h>

bool hkl_live_is_alloc(lua_Alloc f)
{
    (void)f;
    return false;
}

int hak_lua_live_start(lua_State *L, const char *place, char *error, size_t error_size)
{
    const hkc_live_options options = {.place = place};
    char why[HKC_LIVE_ERROR];
    (void)L;
    if (!hkc_live_begin(&options, why)) snprintf(error, error_size, "%s", why);
    return -1;
}

void hak_lua_live_stop(lua_State *L)
{
    (void)L;
}

#include "host.h"

#include <hakmem/lua.h>

lua_State *host_open(bool labels)
{
    return labels ? hak_lua_newstate_labelled(NULL, NULL) : hak_lua_newstate(NULL);
}

void host_close(lua_State *L)
{
    lua_close(L);
}

const char *host_allocator(void)
{
    static char name[32];
    snprintf(name, sizeof name, "hakmem %s", hak_version());
    return name;
}

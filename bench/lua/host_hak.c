#include "host.h"

#include <hakmem/lua.h>

lua_State *host_open(bool labels) {
    lua_State *L = hak_lua_newstate(NULL);
    if (L && labels && hak_lua_labels(L, true) != 0) {
        lua_close(L);
        return NULL;
    }
    return L;
}

void host_close(lua_State *L) {
    lua_close(L);
}

const char *host_allocator(void) {
    static char name[32];
    snprintf(name, sizeof name, "hakmem %s", hak_version());
    return name;
}

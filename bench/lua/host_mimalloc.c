/* mimalloc's default heap, the fastest of its interfaces; a heap of its own per state costs 1 MB. */
#include "host.h"

#include <mimalloc.h>

#include <stdio.h>

static void *mi_lua_alloc(void *ud, void *p, size_t osize, size_t nsize)
{
    (void)ud;
    (void)osize;
    if (nsize == 0) {
        mi_free(p);
        return NULL;
    }
    return mi_realloc(p, nsize);
}

lua_State *host_open(bool labels)
{
    return labels ? NULL : lua_newstate(mi_lua_alloc, NULL);
}

void host_close(lua_State *L)
{
    lua_close(L);
}

const char *host_allocator(void)
{
    static char name[32];
    int v = mi_version();
    snprintf(name, sizeof name, "mimalloc %d.%d.%d", v / 10000, v / 100 % 100, v % 100);
    return name;
}

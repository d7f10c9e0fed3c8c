/* What an allocator adds to the host: how a state is made and ended. One file host_*.c each. */
#ifndef BENCH_LUA_HOST_H
#define BENCH_LUA_HOST_H

#include <lua.h>

#include <stdbool.h>

/* labels: attribute every block, where the allocator can; NULL = it cannot, or no memory. */
lua_State *host_open(bool labels);
void host_close(lua_State *L);
/* Name and version. */
const char *host_allocator(void);

#endif

/* Room on the thread's stack, which guests share with the functions that they call. */
#include "parts.h"

#include <alloca.h>

enum { PAGE = 4096 };

/* Touches each page, as the guard behind a stack may be a single one. */
__attribute__((noinline)) static void touch(size_t bytes)
{
    volatile char *p = alloca(bytes);
    for (size_t at = bytes; at > 0; at = at > PAGE ? at - PAGE : 0)
        p[at - 1] = 0;
}

void hak_wasm_wasm2c_stack(size_t bytes)
{
    if (hkw_wasm2c_by_signals()) touch(bytes);
}

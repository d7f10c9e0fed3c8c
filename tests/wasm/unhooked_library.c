/* What hak_wasmtime_hook_heap finds wasmtime by, and an import of free alone. */
#include <stdlib.h>

void *wasm_engine_new(void);

void *wasm_engine_new(void)
{
    free(NULL);
    return NULL;
}

/* What QuickJS asks of its host: a clock, random numbers, and nothing else. */
#ifndef WASM_SERVER_IMPORTS_H
#define WASM_SERVER_IMPORTS_H

#include <wasmtime.h>

wasmtime_error_t *imports_define(wasmtime_linker_t *linker);

#endif

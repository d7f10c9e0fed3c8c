/* What QuickJS asks of its host: a clock, random numbers, where a promise was rejected, a line of the
 * console, and nothing else. */
#ifndef WASM_SERVER_IMPORTS_H
#define WASM_SERVER_IMPORTS_H

#include "console.h"

#include <stddef.h>
#include <stdint.h>
#include <wasmtime.h>

/* A promise that was rejected when nobody had asked for its outcome. */
typedef struct rejection {
    int32_t promise, reason; /* QuickJS's handles */
    uint64_t value;          /* what `promise` holds: the same for all handles of it */
} rejection;

/* What the functions know of a guest, which is the data of its store. All zero at first. */
typedef struct imported {
    uint64_t time_ns;  /* what clocks say while QuickJS starts; 0 = the time */
    uint64_t start_ns; /* of the script, by the monotonic clock: the guest's begins at 0 */
    rejection *rejections;
    size_t rejection_count, rejection_room;
    uint32_t length_at; /* in the memory of a guest: 4 bytes for the length of a text; 0 = no console yet */
    console console;
} imported;

wasmtime_error_t *imports_define(wasmtime_linker_t *linker);
/* A script begins: a clock that begins now, no rejections, no lines. */
void imported_begin(imported *i);
void imported_end(imported *i);

#endif

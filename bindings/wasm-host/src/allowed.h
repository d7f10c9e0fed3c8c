/* What a module may have: the numbers of one, and those that a tenant allows. */
#ifndef HAKMEM_WASM_ALLOWED_H
#define HAKMEM_WASM_ALLOWED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* In the order of hak_wasm_module_limits. */
typedef enum hkw_module_number {
    HKW_MODULE_BYTES,
    HKW_MODULE_TYPES,
    HKW_MODULE_ARITY,
    HKW_MODULE_IMPORTS,
    HKW_MODULE_FUNCTIONS,
    HKW_MODULE_GLOBALS,
    HKW_MODULE_EXPORTS,
    HKW_MODULE_SEGMENTS,
    HKW_MODULE_LOCALS,
    HKW_MODULE_BODY,
    HKW_MODULE_BLOCKS,
    HKW_MODULE_DEPTH,
    HKW_MODULE_RANGES,
    HKW_MODULE_NUMBERS
} hkw_module_number;

/* What the sections of a binary say, each at most what 64 bits hold; those from HKW_MODULE_BLOCKS on, for
 * which all code has to be read, only if `code`. false = they cannot be read. What is no module of version 1
 * has its bytes alone. */
bool hkw_module_count(const uint8_t *bytes, size_t size, bool code, uint64_t numbers[HKW_MODULE_NUMBERS]);

#endif

/* How many mappings a host has made. The system grants a process so many (vm.max_map_count), and one that has
 * them all can start no thread and load no library: memories are refused before that. */
#ifndef HAKMEM_WASM_MAPPINGS_H
#define HAKMEM_WASM_MAPPINGS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

typedef struct hkw_mappings {
    _Atomic size_t used;
    size_t most;
    bool shared; /* `most` is for all hosts together that have not been given a number */
} hkw_mappings;

/* most: 0 = half of what the system grants. */
void hkw_mappings_init(hkw_mappings *mappings, size_t most);
/* false = over the limit. */
bool hkw_mappings_take(hkw_mappings *mappings, size_t n);
void hkw_mappings_give(hkw_mappings *mappings, size_t n);

#endif

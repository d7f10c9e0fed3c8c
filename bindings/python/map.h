/* A map from 64-bit hashes to numbers that grows by mmap: hooks may not use what they replace. Two keys of
 * the same hash count as one, which at a million keys happens with a chance of 1 in 10 million. */
#ifndef HK_PY_MAP_H
#define HK_PY_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct hk_py_map_slot {
    uint64_t hash; /* 0 = free */
    uint32_t value;
} hk_py_map_slot;

typedef struct hk_py_map {
    hk_py_map_slot *slots;
    size_t size, count; /* size: a power of 2, 0 before the first key */
} hk_py_map;

/* NULL = not there. */
const uint32_t *hk_py_map_find(const hk_py_map *map, uint64_t hash);
/* The key is not there yet. False = no memory. */
bool hk_py_map_add(hk_py_map *map, uint64_t hash, uint32_t value);

/* Never 0. */
uint64_t hk_py_hash(const void *bytes, size_t n, uint64_t seed);

/* Memory of whole pages, zero, for good; NULL = none. It is backed when touched. */
void *hk_py_pages(size_t n);

#endif

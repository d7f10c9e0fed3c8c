/* A map from keys to numbers that grows by mmap: hooks may not use what they replace. Its owner keeps the key
 * of each number, so that a slot is four bytes. */
#ifndef HKP_MAP_H
#define HKP_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct hkp_map {
    uint64_t (*hash)(uint32_t number); /* of its key, by hkp_hash */
    bool (*is)(uint32_t number, const void *key);
    uint32_t *slots;    /* numbers; 0 = free */
    size_t size, count; /* size: a power of 2, 0 before the first key */
} hkp_map;

/* 0 = not there. */
uint32_t hkp_map_find(const hkp_map *map, uint64_t hash, const void *key);
/* The number is not 0, its key not there yet. False = no memory. */
bool hkp_map_add(hkp_map *map, uint32_t number);

uint64_t hkp_hash(const void *bytes, size_t n, uint64_t seed);

/* Memory of whole pages, zero, for good; NULL = none. It is backed when touched. */
void *hkp_pages(size_t n);

#endif

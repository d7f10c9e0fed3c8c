#define _GNU_SOURCE
#include "base/map.h"

#include <string.h>
#include <sys/mman.h>

void *hkp_pages(size_t n)
{
    void *p = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return p != MAP_FAILED ? p : NULL;
}

uint64_t hkp_hash(const void *bytes, size_t n, uint64_t seed)
{
    const unsigned char *p = bytes;
    uint64_t hash = seed ^ UINT64_C(0xcbf29ce484222325);
    for (uint64_t word; n >= sizeof word; p += sizeof word, n -= sizeof word) {
        memcpy(&word, p, sizeof word);
        hash = (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
        hash ^= hash >> 32;
    }
    for (size_t i = 0; i < n; i++)
        hash = (hash ^ p[i]) * UINT64_C(0x100000001b3);
    hash ^= hash >> 32;
    hash *= UINT64_C(0xd6e8feb86659fd93);
    return hash ^ hash >> 32;
}

uint32_t hkp_map_find(const hkp_map *map, uint64_t hash, const void *key)
{
    size_t last = map->size - 1;
    for (size_t i = (size_t)hash & last; map->size != 0 && map->slots[i] != 0; i = (i + 1) & last)
        if (map->is(map->slots[i], key)) return map->slots[i];
    return 0;
}

static void put(hkp_map *map, uint32_t number)
{
    size_t i = (size_t)map->hash(number) & (map->size - 1);
    while (map->slots[i] != 0)
        i = (i + 1) & (map->size - 1);
    map->slots[i] = number;
}

static bool grow(hkp_map *map)
{
    uint32_t *old = map->slots;
    size_t old_size = map->size, size = old_size != 0 ? 2 * old_size : 1024;
    uint32_t *slots = hkp_pages(size * sizeof *slots);
    if (!slots) return false;
    map->slots = slots;
    map->size = size;
    for (size_t i = 0; i < old_size; i++)
        if (old[i] != 0) put(map, old[i]);
    if (old_size != 0) munmap(old, old_size * sizeof *old);
    return true;
}

bool hkp_map_add(hkp_map *map, uint32_t number)
{
    if (map->count >= map->size / 4 * 3 && !grow(map)) return false;
    put(map, number);
    map->count++;
    return true;
}

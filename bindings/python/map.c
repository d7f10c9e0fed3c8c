#define _GNU_SOURCE
#include "map.h"

#include <string.h>
#include <sys/mman.h>

void *hk_py_pages(size_t n)
{
    void *p = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return p != MAP_FAILED ? p : NULL;
}

uint64_t hk_py_hash(const void *bytes, size_t n, uint64_t seed)
{
    const unsigned char *p = bytes;
    uint64_t hash = seed ^ UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < n; i++)
        hash = (hash ^ p[i]) * UINT64_C(0x100000001b3);
    hash ^= hash >> 32;
    hash *= UINT64_C(0xd6e8feb86659fd93);
    hash ^= hash >> 32;
    return hash != 0 ? hash : 1;
}

static hk_py_map_slot *slot_of(const hk_py_map *map, uint64_t hash)
{
    size_t i = (size_t)hash & (map->size - 1);
    while (map->slots[i].hash != 0 && map->slots[i].hash != hash)
        i = (i + 1) & (map->size - 1);
    return &map->slots[i];
}

const uint32_t *hk_py_map_find(const hk_py_map *map, uint64_t hash)
{
    if (map->size == 0) return NULL;
    const hk_py_map_slot *slot = slot_of(map, hash);
    return slot->hash == hash ? &slot->value : NULL;
}

static bool grow(hk_py_map *map)
{
    hk_py_map old = *map;
    size_t size = old.size != 0 ? 2 * old.size : 1024;
    hk_py_map_slot *slots = hk_py_pages(size * sizeof *slots);
    if (slots == NULL) return false;
    *map = (hk_py_map){slots, size, old.count};
    for (size_t i = 0; i < old.size; i++) {
        if (old.slots[i].hash != 0) *slot_of(map, old.slots[i].hash) = old.slots[i];
    }
    if (old.size != 0) munmap(old.slots, old.size * sizeof *slots);
    return true;
}

bool hk_py_map_add(hk_py_map *map, uint64_t hash, uint32_t value)
{
    if (map->count >= map->size / 4 * 3 && !grow(map)) return false;
    *slot_of(map, hash) = (hk_py_map_slot){hash, value};
    map->count++;
    return true;
}

/* What is known about return addresses: for each either the kind of block that is allocated there, or that
 * it lies in a helper of the allocator and how far up the next return address is. */
#ifndef HKC_SITE_CACHE_H
#define HKC_SITE_CACHE_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

/* One word a site, so that a reader without a lock sees all of it or none: the address above 16 bits of
 * information. 0 = free. A cache is an array of `slots` (a power of 2) and HKC_SITE_PROBES more. */
enum { HKC_SITE_PROBES = 8 };
typedef _Atomic uint64_t hkc_site_word;

/* With CLIMB, the rest of the information is the size of the frame in words; without, it is a kind. */
#define HKC_SITE_CLIMB 0x8000u
#define HKC_SITE_INFO 0xffffu

static inline size_t hkc_site_slot(uintptr_t pc, size_t slots)
{
    return (size_t)pc & (slots - 1);
}

/* For the allocation path: the information if it is at the home of pc, else more than HKC_SITE_INFO. */
static inline uint64_t hkc_site_home(hkc_site_word *cache, size_t slots, uintptr_t pc)
{
    return atomic_load_explicit(&cache[hkc_site_slot(pc, slots)], memory_order_relaxed) ^ (uint64_t)pc << 16;
}

/* The word of pc wherever it is; 0 = not there. */
static inline uint64_t hkc_site_find(hkc_site_word *cache, size_t slots, uintptr_t pc)
{
    hkc_site_word *home = &cache[hkc_site_slot(pc, slots)];
    for (unsigned i = 0; i < HKC_SITE_PROBES; i++) {
        uint64_t word = atomic_load_explicit(&home[i], memory_order_relaxed);
        if (word >> 16 == pc) return word;
    }
    return 0;
}

/* The same, and it changes places with the word at its home if that may stand there too: the allocation path
 * finds at home what is in use. A word that is lost in a race is unknown once more. */
static inline uint64_t hkc_site_fetch(hkc_site_word *cache, size_t slots, uintptr_t pc)
{
    size_t home = hkc_site_slot(pc, slots);
    for (size_t i = home; i < home + HKC_SITE_PROBES; i++) {
        uint64_t word = atomic_load_explicit(&cache[i], memory_order_relaxed);
        if (word >> 16 != pc) continue;
        uint64_t other = atomic_load_explicit(&cache[home], memory_order_relaxed);
        if (i != home && i - hkc_site_slot((uintptr_t)(other >> 16), slots) < HKC_SITE_PROBES) {
            atomic_store_explicit(&cache[home], word, memory_order_relaxed);
            atomic_store_explicit(&cache[i], other, memory_order_relaxed);
        }
        return word;
    }
    return 0;
}

/* Into the first free slot of the probe sequence; its first slot when all are taken. */
static inline void hkc_site_put(hkc_site_word *cache, size_t slots, uintptr_t pc, unsigned info)
{
    uint64_t word = (uint64_t)pc << 16 | info;
    hkc_site_word *home = &cache[hkc_site_slot(pc, slots)];
    for (unsigned i = 0; i < HKC_SITE_PROBES; i++) {
        uint64_t expected = 0;
        if (atomic_compare_exchange_strong(&home[i], &expected, word)) return;
    }
    atomic_store(home, word);
}

/* For a frame of this size; 0 when it cannot be said in the information. */
static inline unsigned hkc_site_climb(size_t bytes)
{
    size_t words = bytes / sizeof(uintptr_t);
    return words != 0 && words < HKC_SITE_CLIMB ? HKC_SITE_CLIMB | (unsigned)words : 0;
}

#endif

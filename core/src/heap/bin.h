/* A size class of a context: its magazine, and which of its slabs have free blocks. */
#ifndef HK_BIN_H
#define HK_BIN_H

#include "base/base.h"
#include "base/classes.h"
#include "space/space.h"

/* One size class of a context; a cache line. While hi == slots the magazine is closed to frees. A bin of
 * zeros is a class without slab and magazine: every operation takes the slow path. */
typedef struct hk_bin {
    void **top, **lo, **hi; /* [lo, top) are the blocks at hand, there is room up to hi */
    uint8_t *labels;        /* labels[address >> shift]; NULL = the context has no labels */
    void **slots;           /* NULL = the class has no slabs yet */
    hk_slab *slab;          /* that refills come from */
    hk_unit_id first, last; /* partial slabs, the oldest first */
    uint16_t closed;        /* slow frees until the magazine opens again */
    uint8_t backoff;        /* log2 of how long it will be closed next time */
    uint8_t swings;         /* from empty to full since it grew; HK_EMPTIED: it was empty since it was full */
    uint8_t cap, shift, kind, heat;
} hk_bin;
enum { HK_EMPTIED = 128, HK_BIN_SHIFT = 6 };
_Static_assert(sizeof(hk_bin) == 1 << HK_BIN_SHIFT, "a bin is a cache line");

/* `lo` of a magazine that is shut to allocations, above any top: all of a context that is profiled are. Their
 * blocks begin at `slots`. */
#define HK_SHUT ((void **)UINTPTR_MAX)
/* The same, for good: all of a context with HAK_DEBUG_GUARD are, and those that cannot write labels. */
#define HK_SHUT_EVER ((void **)(UINTPTR_MAX - 7))

HK_INLINE bool hk_bin_is_shut(const hk_bin *bin)
{
    return (uintptr_t)bin->lo >= (uintptr_t)HK_SHUT_EVER;
}

/* Where the blocks at hand begin. */
HK_INLINE void **hk_bin_low(const hk_bin *bin)
{
    return HK_LIKELY(!hk_bin_is_shut(bin)) ? bin->lo : bin->slots;
}

/* Whether blocks are at hand. When labels are switched on, another thread shuts magazines of a thread's heap with one
 * store, as this thread looks. ThreadSanitizer wants to be told; without it no instruction may come of that. */
HK_INLINE bool hk_bin_filled(const hk_bin *bin)
{
#ifdef HK_LOCK_PLAIN
    return bin->top > __atomic_load_n(&bin->lo, __ATOMIC_RELAXED);
#else
    return bin->top > bin->lo;
#endif
}

/* The bin is of the calling thread, or its blocks begin at its slots. */
HK_INLINE void hk_bin_shut(hk_bin *bin, void **how)
{
    if (hk_bin_is_shut(bin)) return;
    if (bin->lo != bin->slots) {
        size_t n = (size_t)(bin->top - bin->lo);
        memmove(bin->slots, bin->lo, n * sizeof(void *));
        bin->top = bin->slots + n;
    }
    __atomic_store_n(&bin->lo, how, __ATOMIC_RELAXED);
}

/* They begin at the slots from now on. */
HK_INLINE void hk_bin_lowest(hk_bin *bin)
{
    if (HK_LIKELY(!hk_bin_is_shut(bin))) bin->lo = bin->slots;
}

/* Bytes in front of a context's bins with its table of classes: hk_class_table, or that of
 * wide or of aligned ones. */
enum { HK_BINS_TABLE = 192 };

/* What a context's bins are until its first class gets a slab: every class closed. */
typedef struct hk_no_bins {
    uint8_t table[HK_BINS_TABLE];
    hk_bin bins[HK_BINS];
} hk_no_bins;
_Static_assert(sizeof(hk_no_bins) == HK_BINS_TABLE + sizeof(hk_bin) * HK_BINS, "the table is in front");
/* By which classes the table has. */
enum { HK_FINE, HK_WIDE, HK_MAX_ALIGNED, HK_TABLES };
HK_HIDDEN extern const hk_no_bins hk_no_bins_with[HK_TABLES];

#endif

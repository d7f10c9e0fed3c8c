/* hakmem, the fast paths as inline functions: for hosts that allocate so often that a call shows.
 *
 *   hak_alloc_inline(ctx, n, label)   as hak_alloc_cs(ctx, n, label, 0)
 *   hak_free_inline(ctx, p)           as hak_free(ctx, p)
 *   hak_free_at_hand(ctx, p)          the same, or false if there is no room at hand: nothing was done
 *   hak_alloc_counted(ctx, bin, ...)  while ctx is profiled: a block at hand, if no sample is due
 *
 * Where n and label are constants, an allocation folds to a few loads.
 *
 * What the first two do not find at hand they leave to the functions of the library, so that every context
 * works: local or shared, with debug checks, limits, labels, retired.
 *
 * The price is a layout: HAK_INLINE_LAYOUT numbers what the structs below say of a context, and changes
 * whenever they do. A host that links the library statically is checked by building it. One that loads it
 * dynamically compares the number once: hak_inline_layout() == HAK_INLINE_LAYOUT, and calls the functions of
 * hakmem.h if it differs.
 * Since 0.1. */
#ifndef HAKMEM_INLINE_H
#define HAKMEM_INLINE_H

#include <hakmem/hakmem.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HAK_INLINE_LAYOUT 3
/* The layout that the library was built with. Fast. [any thread] */
HAK_API int hak_inline_layout(void);

/* A size class of a context. Blocks in [lo, top) are at hand; there is room up to hi. */
typedef struct hak_inline_bin {
    void **top, **lo, **hi;
    uint8_t *labels; /* labels[address >> shift]; NULL = the context has no labels */
    void **slots; /* while the context is profiled: blocks in [slots, top) are at hand, for hak_alloc_counted */
    uint8_t private_a[21];
    uint8_t shift;
    uint8_t private_b[2];
} hak_inline_bin;

/* The beginning of a context. A block's unit of 16 KiB is (address - base) >> 14, below `units`; its map
 * entry, xor key, is the number of its bin if the context owns it, else HAK_INLINE_BINS or more. */
typedef struct hak_inline_ctx {
    uint8_t private_a[64];
    uintptr_t base;
    size_t units;
    const uint32_t *map;
    uint32_t key;
    uint8_t private_b[4];
    hak_inline_bin *bins;
} hak_inline_ctx;

enum { HAK_INLINE_MOST = 1024, HAK_INLINE_BINS = 158, HAK_INLINE_UNIT = 14, HAK_INLINE_TABLE = 192 };

/* Number of the bin where blocks of n bytes are allocated, up to HAK_INLINE_MOST: from a table in front of the bins, for heaps
 * of a shared context have fewer classes. */
static inline unsigned hak_inline_class(const hak_ctx *ctx, size_t n)
{
    const uint8_t *table = (const uint8_t *)((const hak_inline_ctx *)(const void *)ctx)->bins;
    return (table - HAK_INLINE_TABLE)[(n + 7) >> 3];
}

/* The same by eighths of n, which is a multiple of 16 from 16 to HAK_INLINE_EIGHTS. */
enum { HAK_INLINE_EIGHTS = 512 };
static inline size_t hak_inline_class_of_eights(size_t eighths)
{
    return eighths - 1;
}

static inline void *hak_alloc_inline(hak_ctx *ctx, size_t n, hak_label label)
{
    if (__builtin_expect(n <= HAK_INLINE_MOST, 1)) {
        hak_inline_bin *bin = ((hak_inline_ctx *)(void *)ctx)->bins + hak_inline_class(ctx, n);
        if (__builtin_expect(bin->top > bin->lo, 1)) {
            void *p = *--bin->top;
            uint8_t *labels = __atomic_load_n(&bin->labels, __ATOMIC_ACQUIRE);
            if (labels) labels[(uintptr_t)p >> bin->shift] = (uint8_t)label;
            return p;
        }
    }
    return hak_alloc_cs(ctx, n, label, 0);
}

/* Where a context, a local one or a thread's heap, counts the bytes to its next sample: an int64_t so many bytes
 * behind its beginning. */
HAK_API extern const size_t hak_inline_left_at;

/* Of a context that is profiled by samples with hak_profile_options.one_by_one: a block of a bin, which has blocks of
 * `size` bytes; without a label. NULL = nothing is at hand, a sample is due, or there is no such profile: hak_alloc_cs
 * does the rest. `left_at` is hak_inline_left_at. */
static inline void *hak_alloc_counted(hak_ctx *ctx, hak_inline_bin *bin, size_t size, size_t left_at)
{
    int64_t *left = (int64_t *)(void *)((char *)ctx + left_at);
    void **top = bin->top;
    if (__builtin_expect(bin->lo <= top || top <= bin->slots, 0)) return NULL;
    int64_t rest = *left - (int64_t)size;
    if (__builtin_expect(rest < 0, 0)) return NULL;
    *left = rest;
    bin->top = top - 1;
    return top[-1];
}

/* The number of the bin that p is of if it lies in a slab or run of the context itself, not of another
 * thread's heap; else HAK_INLINE_BINS or more. Any pointer whatever. */
static inline uint32_t hak_inline_kind(const hak_ctx *ctx, const void *p)
{
    const hak_inline_ctx *c = (const hak_inline_ctx *)(const void *)ctx;
    size_t unit = ((uintptr_t)p - c->base) >> HAK_INLINE_UNIT;
    return __builtin_expect(unit < c->units, 1) ? __atomic_load_n(&c->map[unit], __ATOMIC_RELAXED) ^ c->key
                                                : UINT32_MAX;
}

/* Bytes of a block of that kind, below HAK_INLINE_BINS. Fast. [any thread] */
HAK_API size_t hak_inline_size(uint32_t kind);

/* hak_free_at_hand for a block of that kind, below HAK_INLINE_BINS. */
static inline bool hak_inline_push(hak_ctx *ctx, uint32_t kind, void *p)
{
    hak_inline_bin *bin = ((hak_inline_ctx *)(void *)ctx)->bins + kind;
    void **top = bin->top;
    if (__builtin_expect(top >= bin->hi, 0)) return false;
    *top = p;
    /* Who forks beside this thread finds a magazine that was stored to before its end moved. */
    __atomic_signal_fence(__ATOMIC_RELEASE);
    bin->top = top + 1;
    return true;
}

static inline bool hak_free_at_hand(hak_ctx *ctx, void *p)
{
    uint32_t kind = hak_inline_kind(ctx, p);
    if (__builtin_expect(kind >= HAK_INLINE_BINS, 0)) return false;
    return hak_inline_push(ctx, kind, p);
}

static inline void hak_free_inline(hak_ctx *ctx, void *p)
{
    if (__builtin_expect(!hak_free_at_hand(ctx, p), 0)) hak_free(ctx, p);
}

#ifdef __cplusplus
}
#endif

#endif

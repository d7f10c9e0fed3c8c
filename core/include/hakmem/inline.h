/* hakmem, the fast paths as inline functions: for hosts that allocate so often that the call itself costs.
 *
 *   hak_alloc_inline(ctx, n, label)   as hak_alloc_cs(ctx, n, label, 0)
 *   hak_free_inline(ctx, p)           as hak_free(ctx, p)
 *   hak_free_at_hand(ctx, p)          the same; false = no room at hand, and nothing was done
 *   hak_alloc_counted(ctx, bin, ...)  while ctx is profiled: a block at hand, if no sample is due
 *
 * If n and label are constants, an allocation compiles to a few loads.
 *
 * STABILITY  Experimental: HAK_INLINE_LAYOUT says which library fits.
 *
 * When nothing is at hand, the first two call the library. So they work with every context: local, shared or
 * retired, with debug checks, limits and labels.
 *
 * The price is a fixed layout. HAK_INLINE_LAYOUT is the number of the layout that the structs below describe;
 * it changes when they do. A host that links the library statically gets the right one when it is built. A
 * host that loads the library dynamically compares once, hak_inline_layout() == HAK_INLINE_LAYOUT, and calls
 * the functions of hakmem.h if the numbers differ. Since 0.1. */
#ifndef HAKMEM_INLINE_H
#define HAKMEM_INLINE_H

#include <hakmem/hakmem.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HAK_INLINE_LAYOUT 3
/* Returns the layout that the library was built with. Fast. [any thread] */
HAK_API int hak_inline_layout(void);

/* The magazine of a size class of a context. The blocks in [lo, top) are at hand; there is room up to hi. */
typedef struct hak_inline_bin {
    void **top, **lo, **hi;
    uint8_t *labels; /* labels[address >> shift]; NULL = the context has no labels */
    void **slots;    /* while the context is profiled: blocks in [slots, top) are at hand, for
                        hak_alloc_counted */
    uint8_t private_a[21];
    uint8_t shift;
    uint8_t private_b[2];
} hak_inline_bin;

/* The beginning of a context. A block lies in the unit of 16 KiB with the number (address - base) >> 14,
 * below `units`. The unit's entry in the map, xor key, is the number of the block's bin if the context owns
 * the unit; otherwise it is HAK_INLINE_BINS or more. */
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

/* Returns the number of the bin for n bytes, up to HAK_INLINE_MOST. The number comes from a table in front of
 * the bins, because the heaps of a shared context have fewer classes. */
static inline unsigned hak_inline_class(const hak_ctx *ctx, size_t n)
{
    const uint8_t *table = (const uint8_t *)((const hak_inline_ctx *)(const void *)ctx)->bins;
    return (table - HAK_INLINE_TABLE)[(n + 7) >> 3];
}

/* Returns the same number for n = 8 * eighths, a multiple of 16 from 16 to HAK_INLINE_EIGHTS. */
enum { HAK_INLINE_EIGHTS = 512 };
static inline size_t hak_inline_class_of_eights(size_t eighths)
{
    return eighths - 1;
}

/* Returns the bin for n bytes, up to HAK_INLINE_MOST. A host may keep the pointer for further allocations of
 * n bytes until the context, or the thread's heap, ends. When another bin becomes the one for n bytes, this
 * bin has nothing at hand: ask again then. */
static inline hak_inline_bin *hak_inline_bin_of(const hak_ctx *ctx, size_t n)
{
    return ((const hak_inline_ctx *)(const void *)ctx)->bins + hak_inline_class(ctx, n);
}

/* Returns whether a bin has a block at hand. */
static inline bool hak_inline_at_hand(const hak_inline_bin *bin)
{
    return __builtin_expect(bin->top > bin->lo, 1);
}

/* Takes a block that is at hand. */
static inline void *hak_inline_pop(hak_inline_bin *bin, hak_label label)
{
    void *p = *--bin->top;
    uint8_t *labels = __atomic_load_n(&bin->labels, __ATOMIC_ACQUIRE);
    if (labels) labels[(uintptr_t)p >> bin->shift] = (uint8_t)label;
    return p;
}

static inline void *hak_alloc_inline(hak_ctx *ctx, size_t n, hak_label label)
{
    if (__builtin_expect(n <= HAK_INLINE_MOST, 1)) {
        hak_inline_bin *bin = hak_inline_bin_of(ctx, n);
        if (hak_inline_at_hand(bin)) return hak_inline_pop(bin, label);
    }
    return hak_alloc_cs(ctx, n, label, 0);
}

/* The offset in a context, or in a thread's heap, of the int64_t that counts the bytes to the next sample. */
HAK_API extern const size_t hak_inline_left_at;

/* Takes a block from a bin whose blocks have `size` bytes, without a label, in a context with a sampled
 * profile that was started with hak_profile_options.one_by_one. NULL = nothing is at hand, a sample is due,
 * or there is no such profile: call hak_alloc_cs then. left_at: hak_inline_left_at. */
static inline void *hak_alloc_counted(hak_ctx *ctx, hak_inline_bin *bin, size_t size, size_t left_at)
{
    int64_t *left = (int64_t *)(void *)((char *)ctx + left_at);
    void **top = bin->top;
    /* The profile shuts a magazine by this `lo` alone: others that are shut are not for the host. */
    if (__builtin_expect(bin->lo != (void **)UINTPTR_MAX || top <= bin->slots, 0)) return NULL;
    int64_t rest = *left - (int64_t)size;
    if (__builtin_expect(rest < 0, 0)) return NULL;
    *left = rest;
    bin->top = top - 1;
    return top[-1];
}

/* Returns the number of p's bin if p lies in a slab or run of this context, and not of another thread's heap;
 * otherwise HAK_INLINE_BINS or more. p may be any pointer. */
static inline uint32_t hak_inline_kind(const hak_ctx *ctx, const void *p)
{
    const hak_inline_ctx *c = (const hak_inline_ctx *)(const void *)ctx;
    size_t unit = ((uintptr_t)p - c->base) >> HAK_INLINE_UNIT;
    return __builtin_expect(unit < c->units, 1) ? __atomic_load_n(&c->map[unit], __ATOMIC_RELAXED) ^ c->key
                                                : UINT32_MAX;
}

/* Returns the size of the blocks of a bin; kind is below HAK_INLINE_BINS. Fast. [any thread] */
HAK_API size_t hak_inline_size(uint32_t kind);

/* Does what hak_free_at_hand does, for a block whose bin is known; kind is below HAK_INLINE_BINS. */
static inline bool hak_inline_push(hak_ctx *ctx, uint32_t kind, void *p)
{
    hak_inline_bin *bin = ((hak_inline_ctx *)(void *)ctx)->bins + kind;
    void **top = bin->top;
    if (__builtin_expect(top >= bin->hi, 0)) return false;
    *top = p;
    /* If another thread forks between the two stores, the child finds the block stored and the end not yet
     * moved. */
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

/* Labels of packed blocks: half a byte for each 16 bytes, in the area of an extent that has a byte for each
 * 32. A block of 64 bytes or more covers all of the 32 bytes behind those in which it starts: their byte is
 * its label, and no other block's, so that magazines write it as they write those of slabs. A smaller one has
 * the half of the 16 bytes in which it starts, and one of 32 bytes or more the next half, too, for the upper
 * bits: no other block starts in either. So a block of 16 or 24 bytes has labels up to 15 only. Halves of
 * neighbours share a byte, which is read and written under the lock of their heap; the holder of a block may
 * read its own half without. */
#ifndef HK_PACKED_LABEL_H
#define HK_PACKED_LABEL_H

#include "heap/ctx.h"

enum {
    HK_HALVES = 64,     /* from this size on a block has a byte to itself */
    HK_TWO_HALVES = 32, /* ... two halves */
    HK_HALF_MOST = 15,  /* the largest label of one half */
    /* The first classes of these sizes: they are 8 bytes apart. */
    HK_HALVES_CLASS = HK_HALVES / 8 - 1,
    HK_TWO_HALVES_CLASS = HK_TWO_HALVES / 8 - 1
};

/* What bin->labels is for packed blocks of the class; NULL = magazines cannot write their labels. */
HK_INLINE uint8_t *hk_packed_labels_of(const hak_ctx *ctx, unsigned sc)
{
    return ctx->labels.on && sc >= HK_HALVES_CLASS ? ctx->extent->labels[HK_AREA_PACKED] + 1 : NULL;
}

HK_INLINE unsigned hk_half_get(const uint8_t *labels, size_t i)
{
    return __atomic_load_n(&labels[i / 2], __ATOMIC_RELAXED) >> (i % 2 * 4) & HK_HALF_MOST;
}

HK_INLINE void hk_half_set(uint8_t *labels, size_t i, unsigned half)
{
    unsigned shift = i % 2 * 4, byte = __atomic_load_n(&labels[i / 2], __ATOMIC_RELAXED);
    byte = (byte & ~((unsigned)HK_HALF_MOST << shift)) | half << shift;
    __atomic_store_n(&labels[i / 2], (uint8_t)byte, __ATOMIC_RELAXED);
}

/* Of the block at p, of `size` bytes, in the extent. */
HK_INLINE unsigned hk_packed_label(const hk_extent *e, const void *p, size_t size)
{
    const uint8_t *labels = e->labels[HK_AREA_PACKED];
    uintptr_t at = (uintptr_t)p;
    if (size >= HK_HALVES) return __atomic_load_n(&labels[at / 32 + 1], __ATOMIC_RELAXED);
    unsigned upper = size >= HK_TWO_HALVES ? hk_half_get(labels, at / 16 + 1) : 0;
    return hk_half_get(labels, at / 16) | upper << 4;
}

/* Whether a block of that size can have the label. */
HK_INLINE bool hk_packed_label_fits(size_t size, unsigned label)
{
    return size >= HK_TWO_HALVES || label <= HK_HALF_MOST;
}

/* Of a block of less than HK_HALVES; the label fits. two: it has two halves. */
HK_INLINE void hk_halves_set(uint8_t *labels, const void *p, bool two, unsigned label)
{
    size_t i = (uintptr_t)p / 16;
    if (two && i % 2 == 0) {
        __atomic_store_n(&labels[i / 2], (uint8_t)label, __ATOMIC_RELAXED);
        return;
    }
    hk_half_set(labels, i, label & HK_HALF_MOST);
    if (two) hk_half_set(labels, i + 1, label >> 4);
}

/* The label fits. */
HK_INLINE void hk_packed_label_set(const hk_extent *e, const void *p, size_t size, unsigned label)
{
    uint8_t *labels = e->labels[HK_AREA_PACKED];
    if (HK_LIKELY(size >= HK_HALVES))
        __atomic_store_n(&labels[(uintptr_t)p / 32 + 1], (uint8_t)label, __ATOMIC_RELAXED);
    else hk_halves_set(labels, p, size >= HK_TWO_HALVES, label);
}

#endif

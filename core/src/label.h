/* Labels: a byte for each block, off the blocks. Slabs and runs: areas of the extent, a byte for each
 * 2^shift bytes of address space, one area a shift. Packed units: a byte for each 16 bytes, in the unit.
 * Big blocks: in their record. Stored on allocation, left alone on free, summed on demand. */
#ifndef HK_LABEL_H
#define HK_LABEL_H

#include "heap.h"

HK_INLINE uint8_t *hk_label_byte(const hk_extent *e, unsigned kind, const void *p)
{
    unsigned area = kind < HK_SMALL_CLASSES ? hk_classes[kind].area : HK_AREA_RUN;
    return (uint8_t *)((uintptr_t)e->labels[area] + ((uintptr_t)p >> hk_area_shift[area]));
}

HK_INLINE uint8_t hk_label_clamp(hak_label label)
{
    return (uint8_t)(label <= HAK_LABELS_MAX ? label : 0);
}

HK_INLINE void hk_label_set(const hk_extent *e, unsigned kind, const void *p, hak_label label)
{
    *hk_label_byte(e, kind, p) = hk_label_clamp(label);
}

/* A label byte that nobody defined counts as 0. */
HK_INLINE hak_label hk_label_known(const hak_ctx *ctx, unsigned label)
{
    return (hak_label)(label <= hk_root(ctx)->label_count ? label : 0);
}

/* The label of a live block. */
hak_label hk_label_of_block(const hak_ctx *ctx, const void *p);
/* Gives it another label, wherever it is. */
void hk_relabel(const hak_ctx *ctx, void *p, hak_label label);

#endif

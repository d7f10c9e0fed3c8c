/* Labels: a byte for each block, apart from the blocks. For slabs and runs, an extent has areas with a byte
 * for each 2^shift bytes of address space, one area for each shift. Packed units use one of these areas
 * (packed_label.h); big blocks have the label in their record. An allocation stores the label, a free leaves
 * it alone, and the sums are made on demand. */
#ifndef HK_LABEL_H
#define HK_LABEL_H

#include "heap/packed_label.h"

/* Of a block of a slab, or a run. */
HK_INLINE uint8_t *hk_label_byte(const hk_extent *e, unsigned kind, const void *p)
{
    unsigned area = hk_area_of(kind);
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

/* Of a block of any of these kinds; size: of a packed one. */
HK_INLINE unsigned hk_label_at(const hk_extent *e, unsigned kind, const void *p, size_t size)
{
    return kind == HK_KIND_PACKED ? hk_packed_label(e, p, size) : *hk_label_byte(e, kind, p);
}

/* A label byte whose label is not defined counts as 0. */
HK_INLINE hak_label hk_label_known(const hak_ctx *ctx, unsigned label)
{
    return (hak_label)(label <= hk_whole(ctx)->labels.count ? label : 0);
}

/* The name of a label; NULL = there is no such label. */
const char *hk_label_name(const hak_ctx *ctx, hak_label label);
/* Of a name of 1 to 63 bytes; 0 = it is none. */
size_t hk_label_name_length(const char *name);
/* What is wrong with names given to a context; NULL = nothing. */
const char *hk_label_names_error(const char *const *names, size_t count);
#endif

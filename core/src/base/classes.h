/* Size classes: 8-byte steps to 512, 32-byte steps to 1024, then 8 classes a doubling to 32 KiB; and one just
 * above each power of two from 512 on, for arrays with a header or an element 0 (slabs); runs of 3 to 64
 * units above. A kind is a class number, or one of the special kinds below; a unit's
 * map entry holds it. */
#ifndef HK_CLASSES_H
#define HK_CLASSES_H

#include "base/base.h"

enum {
    HK_SMALL_CLASSES = 126,
    HK_RUN_CLASSES = 32,
    HK_BINS = HK_SMALL_CLASSES + HK_RUN_CLASSES,
    HK_KIB_CLASSES = 81,   /* those up to 1 KiB */
    HK_KIND_PACKED = 254,  /* a unit of packed small blocks */
    HK_KIND_META = 253,    /* a unit of the context's own data */
    HK_KIND_LABELS = 252,  /* a unit of label bytes, of no context */
    HK_KIND_WATCHED = 251, /* a block that starts here is a sample of a profile; its record has the kind */
    HK_KIND_MASK = 255     /* of a map entry */
};

typedef struct hk_class {
    uint32_t reciprocal; /* ceil(2^32 / size): exact for offsets below 128 KiB */
    uint16_t size;
    uint16_t least;   /* a block is kept when it is resized to this or more; see HK_ROOM */
    uint8_t few;      /* units of a slab in a small heap */
    uint8_t units;    /* ... and in one where they are no matter */
    uint8_t shift;    /* log2 of the bytes that share a label byte; at most the size */
    uint8_t area;     /* which label area has that shift */
    uint8_t magazine; /* blocks kept at hand, at most */
    uint8_t bits;     /* log2 of a slab's bitmap in HK_BITMAP_LEAST */
} hk_class;

/* How much larger than the class of its use a block of s bytes may be. From 1 KiB on, growth by small steps
 * over-allocates by as much. */
#define HK_ROOM(s) ((s) <= 1024 ? (s) / 8 : (s) / 4)

HK_HIDDEN extern const hk_class hk_classes[HK_SMALL_CLASSES];
/* Class of a size up to 1024, by (size + 7) / 8. */
HK_HIDDEN extern const uint8_t hk_class_table[129];
/* Class of a size above 1024 and up to 32 KiB, by (size + 63) / 64. */
HK_HIDDEN extern const uint8_t hk_class_table_above[513];

/* That table, by a function of its classes. */
#define HK_SAME4(c) (c), (c), (c), (c)
#define HK_SEQ4(f, c) f(c), f((c) + 1), f((c) + 2), f((c) + 3)
#define HK_SEQ16(f, c) HK_SEQ4(f, c), HK_SEQ4(f, (c) + 4), HK_SEQ4(f, (c) + 8), HK_SEQ4(f, (c) + 12)
#define HK_FOUR4(f, c) HK_SAME4(f(c)), HK_SAME4(f((c) + 1)), HK_SAME4(f((c) + 2)), HK_SAME4(f((c) + 3))
#define HK_CLASS_TABLE(f)                                                                                    \
    {                                                                                                        \
        f(0), HK_SEQ16(f, 0), HK_SEQ16(f, 16), HK_SEQ16(f, 32), HK_SEQ16(f, 48), f(64), f(65), f(65), f(65), \
            HK_SAME4(f(66)), HK_SAME4(f(67)), HK_SAME4(f(68)), HK_FOUR4(f, 69), HK_FOUR4(f, 73),             \
            HK_FOUR4(f, 77)                                                                                  \
    }
#define HK_EACH_CLASS(c) (c)
/* In heaps of threads: 16 bytes apart from 128 bytes on, 64 from 512 on. Many heaps with all classes each
 * would hold more in slabs that are partly used than rounding costs. */
#define HK_WIDE_CLASS(c) ((c) < 16 ? (c) : (c) < 64 ? (c) | 1 : (c) == 64 ? 66 : ((c) + 1) & ~1)
/* The same where all blocks are aligned for anything: none but multiples of 16. */
#define HK_MAX_ALIGNED_CLASS(c) ((c) < 16 ? (c) | 1 : HK_WIDE_CLASS(c))

HK_INLINE unsigned hk_class_of(size_t n)
{
    return HK_LIKELY(n <= 1024) ? hk_class_table[(n + 7) >> 3] : hk_class_table_above[(n + 63) >> 6];
}

/* Label areas, by the log2 of the bytes that share a byte. */
enum { HK_AREAS = 7, HK_AREA_PACKED = 2 /* 32 bytes */, HK_AREA_RUN = 6 };
HK_HIDDEN extern const uint8_t hk_area_shift[HK_AREAS];

/* Where units of this kind have their label bytes, if they have any. */
HK_INLINE unsigned hk_area_of(unsigned kind)
{
    return kind < HK_SMALL_CLASSES  ? hk_classes[kind].area
           : kind == HK_KIND_PACKED ? HK_AREA_PACKED
                                    : HK_AREA_RUN;
}

HK_INLINE bool hk_has_labels(unsigned kind)
{
    return kind < HK_BINS || kind == HK_KIND_PACKED;
}

/* Run classes: every count of units to 16, then 8 a doubling. */
HK_INLINE unsigned hk_run_class(size_t units)
{
    if (units <= 16) return (unsigned)units - 1;
    unsigned log = hk_log2(units - 1); /* 4 or 5 */
    return 16u + (log - 4u) * 8u + (unsigned)(((units - 1) >> (log - 3)) & 7u);
}

HK_INLINE unsigned hk_run_units(unsigned run_class)
{
    if (run_class < 16) return run_class + 1;
    unsigned octave = (run_class - 16) / 8, step = (run_class - 16) % 8;
    return (16u << octave) + (step + 1) * (2u << octave);
}

/* Of a block above 1 KiB and up to 1 MiB. */
HK_INLINE unsigned hk_kind_above(size_t n)
{
    if (n <= HK_SMALL_MAX) return hk_class_table_above[(n + 63) >> 6];
    return HK_SMALL_CLASSES + hk_run_class((n + HK_UNIT - 1) >> HK_UNIT_SHIFT);
}

HK_INLINE size_t hk_kind_size(unsigned kind)
{
    if (kind < HK_SMALL_CLASSES) return hk_classes[kind].size;
    return (size_t)hk_run_units(kind - HK_SMALL_CLASSES) << HK_UNIT_SHIFT;
}

#endif

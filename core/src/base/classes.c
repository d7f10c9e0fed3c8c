#include "base/classes.h"

#define SHIFT(s) ((s) < 16 ? 3 : (s) < 32 ? 4 : (s) < 64 ? 5 : (s) < 128 ? 6 : (s) < 512 ? 7 : 9)
#define AREA(s) (SHIFT(s) == 9 ? 5 : SHIFT(s) - 3)
/* A large heap: four blocks a slab, eight up to 8 KiB; more or fewer units where less is lost at its end. */
#define UNITS(s)                                                                                             \
    ((s) <= 1152    ? 1                                                                                      \
     : (s) <= 2048  ? ((s) == 1792 || (s) == 2048 ? 1 : 2)                                                   \
     : (s) <= 4096  ? ((s) == 2112 || (s) == 2304 || (s) == 3584 || (s) == 3840 || (s) == 4096 ? 2 : 3)      \
     : (s) <= 16384 ? ((s) == 11264   ? 7                                                                    \
                       : (s) == 13312 ? 5                                                                    \
                       : (s) == 8256  ? 8                                                                    \
                                      : 4)                                                                    \
                    : ((s) == 22528   ? 7                                                                    \
                       : (s) == 26624 ? 5                                                                    \
                                      : 8))
/* A small heap: the fewest units that lose at most an eighth. */
#define FITS(s, units) ((units)*16384 % (s)*8 <= (units)*16384)
#define FEW(s) (FITS(s, 1) ? 1 : FITS(s, 2) ? 2 : FITS(s, 3) ? 3 : FITS(s, 4) ? 4 : FITS(s, 5) ? 5 : 8)
#define MAGAZINE(s)                                                                                          \
    ((s) <= 256 ? 32 : (s) <= 512 ? 16 : (s) <= 1024 ? 8 : (s) <= 2048 ? 4 : (s) <= 8256 ? 2 : 1)
/* Slabs of more than a unit have 64 blocks at most. */
#define BITS(s) ((s) < 32 ? 3 : (s) < 64 ? 2 : (s) < 128 ? 1 : 0)
/* All sizes of the class that holds the least within the room. */
#define STEP(s)                                                                                              \
    ((s) <= 512     ? 8                                                                                      \
     : (s) <= 1024  ? 32                                                                                     \
     : (s) <= 2048  ? 128                                                                                    \
     : (s) <= 4096  ? 256                                                                                    \
     : (s) <= 8192  ? 512                                                                                    \
     : (s) <= 16384 ? 1024                                                                                   \
                    : 2048)
#define BELOW(s) (((s)-1) / STEP(s) * STEP(s))
#define LEAST(s) ((s) == 8 ? 0 : BELOW((s)-HK_ROOM(s)) + 1)
#define CLASS(s)                                                                                             \
    {                                                                                                        \
        (uint32_t)((0xFFFFFFFFull + (s)) / (s)), (s), LEAST(s), FEW(s), UNITS(s), SHIFT(s), AREA(s),         \
            MAGAZINE(s), BITS(s)                                                                             \
    }
#define CLASS4(s, d) CLASS(s), CLASS((s) + (d)), CLASS((s) + 2 * (d)), CLASS((s) + 3 * (d))
#define CLASS16(s, d)                                                                                        \
    CLASS4(s, d), CLASS4((s) + 4 * (d), d), CLASS4((s) + 8 * (d), d), CLASS4((s) + 12 * (d), d)
#define CLASS8(s, d) CLASS4(s, d), CLASS4((s) + 4 * (d), d)

const hk_class hk_classes[HK_SMALL_CLASSES] = {
    CLASS16(8, 8), CLASS16(136, 8),    CLASS16(264, 8), CLASS16(392, 8),     CLASS(520),  CLASS16(544, 32),
    CLASS(1088),   CLASS8(1152, 128),  CLASS(2112),     CLASS8(2304, 256),   CLASS(4160), CLASS8(4608, 512),
    CLASS(8256),   CLASS8(9216, 1024), CLASS(16448),    CLASS8(18432, 2048),
};

const uint8_t hk_area_shift[HK_AREAS] = {3, 4, 5, 6, 7, 9, HK_UNIT_SHIFT};

const uint8_t hk_class_table[129] = HK_CLASS_TABLE(HK_EACH_CLASS);

#define SAME1(c) (c)
#define SAME2(c) (c), (c)
#define SAME3(c) SAME2(c), (c)
#define SAME7(c) HK_SAME4(c), SAME3(c)
#define SAME8(c) HK_SAME4(c), HK_SAME4(c)
#define SAME15(c) SAME8(c), SAME7(c)
#define SAME16(c) SAME8(c), SAME8(c)
#define SAME31(c) SAME16(c), SAME15(c)
#define SAME32(c) SAME16(c), SAME16(c)
/* A doubling: the class just above the power of two, the rest of the first step, seven whole steps. */
#define DOUBLING(c, rest, step)                                                                              \
    (c), rest((c) + 1), step((c) + 2), step((c) + 3), step((c) + 4), step((c) + 5), step((c) + 6),           \
        step((c) + 7), step((c) + 8)

const uint8_t hk_class_table_above[513] = {
    SAME16(0),
    0,
    DOUBLING(81, SAME1, SAME2),
    DOUBLING(90, SAME3, HK_SAME4),
    DOUBLING(99, SAME7, SAME8),
    DOUBLING(108, SAME15, SAME16),
    DOUBLING(117, SAME31, SAME32),
};

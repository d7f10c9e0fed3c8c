/* Masks with a bit for each unit of a chunk. */
#ifndef HK_MASK_H
#define HK_MASK_H

#include "base/base.h"

__extension__ typedef unsigned __int128 hk_row128;

typedef struct hk_mask {
    uint64_t w[2];
} hk_mask;

HK_INLINE hk_mask hk_mask_of(unsigned from, unsigned n)
{
    hk_row128 row = (n == 128 ? ~(hk_row128)0 : ((hk_row128)1 << n) - 1) << from;
    hk_mask m = {{(uint64_t)row, (uint64_t)(row >> 64)}};
    return m;
}

HK_INLINE unsigned hk_mask_count(const uint64_t w[2])
{
    if (!(w[0] | w[1])) return 0;
    return hk_bits(w[0]) + hk_bits(w[1]);
}

HK_INLINE unsigned hk_row_first(hk_row128 x)
{
    if ((uint64_t)x) return (unsigned)__builtin_ctzll((uint64_t)x);
    uint64_t high = (uint64_t)(x >> 64);
    return high ? 64u + (unsigned)__builtin_ctzll(high) : 128u;
}

/* Those bits that have no neighbour. */
HK_INLINE hk_row128 hk_row_single(hk_row128 x)
{
    return x & ~(x << 1) & ~(x >> 1);
}

/* First of n set bits in a row; a single one where it has no neighbour, so that rows are kept. 128 = none. */
HK_INLINE unsigned hk_mask_row(const uint64_t w[2], unsigned n)
{
    hk_row128 all = ((hk_row128)w[1] << 64) | w[0], x = all;
    for (unsigned have = 1; have < n && x;) {
        unsigned step = n - have < have ? n - have : have;
        x &= x >> step;
        have += step;
    }
    hk_row128 single = n == 1 ? hk_row_single(all) : 0;
    return hk_row_first(single ? single : x);
}

/* The n lowest bits that are set. */
HK_INLINE hk_mask hk_mask_lowest(const uint64_t w[2], unsigned n)
{
    hk_mask m = {{0, 0}};
    uint64_t rest[2] = {w[0], w[1]};
    for (unsigned i = 0; n > 0 && (rest[0] | rest[1]); n--) {
        if (!rest[i]) i = 1;
        m.w[i] |= rest[i] & -rest[i];
        rest[i] &= rest[i] - 1;
    }
    return m;
}

#endif

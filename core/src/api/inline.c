/* Asserts that the layout of hakmem/inline.h is that of the structs of the core. */
#include "hakmem/inline.h"

#include "heap/ctx.h"

#define SAME_PLACE(type, field, inline_type, inline_field)                                                   \
    _Static_assert(offsetof(type, field) == offsetof(inline_type, inline_field), "see hakmem/inline.h")
SAME_PLACE(hak_ctx, base, hak_inline_ctx, base);
SAME_PLACE(hak_ctx, units, hak_inline_ctx, units);
SAME_PLACE(hak_ctx, map, hak_inline_ctx, map);
SAME_PLACE(hak_ctx, key, hak_inline_ctx, key);
SAME_PLACE(hak_ctx, bins, hak_inline_ctx, bins);
SAME_PLACE(hk_bin, top, hak_inline_bin, top);
SAME_PLACE(hk_bin, lo, hak_inline_bin, lo);
SAME_PLACE(hk_bin, hi, hak_inline_bin, hi);
SAME_PLACE(hk_bin, labels, hak_inline_bin, labels);
SAME_PLACE(hk_bin, shift, hak_inline_bin, shift);
SAME_PLACE(hk_bin, slots, hak_inline_bin, slots);
_Static_assert(sizeof(hk_bin) == sizeof(hak_inline_bin), "see hakmem/inline.h");
_Static_assert((int)HAK_INLINE_BINS == (int)HK_BINS && HAK_INLINE_UNIT == HK_UNIT_SHIFT &&
                   (int)HAK_INLINE_TABLE == (int)HK_BINS_TABLE,
               "see hakmem/inline.h");

_Static_assert(sizeof((hak_ctx *)NULL)->sampling.left == sizeof(int64_t), "see hakmem/inline.h");
const size_t hak_inline_left_at = offsetof(hak_ctx, sampling.left);

int hak_inline_layout(void)
{
    return HAK_INLINE_LAYOUT;
}

size_t hak_inline_size(uint32_t kind)
{
    return hk_kind_size(kind);
}

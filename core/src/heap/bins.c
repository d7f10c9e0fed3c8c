/* 30 KiB of constants, which a context reads once. They have a file of their own so that programs can place
 * them. */
#include "heap/ctx.h"

const hk_no_bins hk_no_bins_with[] = {
    [HK_FINE] = {.table = HK_CLASS_TABLE(HK_EACH_CLASS)},
    [HK_WIDE] = {.table = HK_CLASS_TABLE(HK_WIDE_CLASS)},
    [HK_MAX_ALIGNED] = {.table = HK_CLASS_TABLE(HK_MAX_ALIGNED_CLASS)},
};

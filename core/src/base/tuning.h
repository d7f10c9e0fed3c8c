/* The numbers of a context or a space: those that the host gave, and the rest by mode and workload. */
#ifndef HK_TUNING_H
#define HK_TUNING_H

#include "base/base.h"

#include "hakmem/tuning.h"

/* Most that packed_bytes may be. */
enum { HK_PACKED_MOST = 16 << 20, HK_GUARD_SLOTS_MOST = 65536 };

enum {
    HK_MODES = HAK_MODE_RESEARCH + 1,
    HK_TUNING_FIELDS = sizeof(hak_tuning) / sizeof(size_t), /* `size`, of number 0, included */
    HK_TUNING_NAME = 24
};

/* All numbers: *to is theirs if any were given. Returns to, or a constant; NULL = *error says what is wrong.
 * *said: a bit for each number that was given. */
const hak_tuning *hk_tuning_read(hak_tuning *to, const hak_tuning *given, hak_mode mode,
                                 hak_workload workload, uint32_t *said, const char **error);
/* What is wrong with numbers of which none is 0 but first_offset; NULL = nothing. */
const char *hk_tuning_wrong(const hak_tuning *t);
/* The numbers of a mode, which is one. */
const hak_tuning *hk_tuning_preset(hak_mode mode, hak_workload workload);
/* *to: the numbers of t that were given, 0 for others. Returns to. */
const hak_tuning *hk_tuning_said(hak_tuning *to, const hak_tuning *t, uint32_t said);
/* Field i, from 1. */
const char *hk_tuning_name(unsigned i);
size_t hk_tuning_get(const hak_tuning *t, unsigned i);
void hk_tuning_set(hak_tuning *t, unsigned i, size_t v);

/* Whether a caller's struct can be written to. */
HK_INLINE bool hk_tuning_fits(const hak_tuning *t)
{
    return hk_sized_fits(t->size, sizeof *t) && t->size % sizeof t->size == 0;
}

/* HAK_NONE is 0 bytes. */
HK_INLINE size_t hk_or_none(size_t n)
{
    return n == HAK_NONE ? 0 : n;
}

#endif

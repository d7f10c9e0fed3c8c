/* The numbers of a context or a space: what was given, and the rest by mode and workload. */
#ifndef HK_TUNING_H
#define HK_TUNING_H

#include "base/base.h"

#include "hakmem/tuning.h"

/* Most that packed_bytes may be. */
enum { HK_PACKED_MOST = 16 << 20 };

/* All numbers: *to is theirs if any were given. Returns to, or a constant; NULL = *error says what is wrong.
 */
const hak_tuning *hk_tuning_read(hak_tuning *to, const hak_tuning *given, hak_mode mode,
                                 hak_workload workload, const char **error);

/* HAK_NONE is 0 bytes. */
HK_INLINE size_t hk_or_none(size_t n)
{
    return n == HAK_NONE ? 0 : n;
}

#endif

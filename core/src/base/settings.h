/* Settings: the numbers that contexts and spaces follow, a row for each. A setting comes from the first of
 * these that gives it: the policy, the host's hak_tuning, the policy's mode, the host's mode and workload.
 *
 * The table makes the defaults, the ranges and their messages, the words of a policy's text, and the loops of
 * apply_heap.c and apply_space.c. tests/documents/test_tuning.py holds hakmem/tuning.h and
 * docs/guide/modes.md against it. */
#ifndef HK_SETTINGS_H
#define HK_SETTINGS_H

#include "base/base.h"

#include "hakmem/tuning.h"

enum { HK_PACKED_MOST = 16 << 20, HK_GUARD_SLOTS_MOST = 65536, HK_POPULATE_NEVER = 255 };

/* clang-format off */
/* A row: KEPT BY(setting, in, as none, when, range, range in words, then the defaults in the modes balanced,
 * minimal, fast, lean, and with HAK_WORKLOAD_COUNTED in balanced and lean)
 * Kept by HEAP, SPACE: in this member of each context or of the space, where `as none` stands for HAK_NONE;
 * OWN: by a context, which copies it by itself. when: ONCE = when a context is made; LATER = by any policy
 * that comes later, too. Rows are in the order of hak_tuning. */
#define HK_SETTINGS(HEAP, SPACE, OWN)                                                                        \
    HEAP(magazine, magazines.cap, 0, LATER, FROM_OR_NONE(2, 128), "2 to 128" OR_NONE,                        \
      32, NONE, 128, 32, 128, 128)                                                                           \
    HEAP(magazine_most, magazines.most, 0, LATER, FROM_OR_NONE(8, MIB(1)), "8 to 1 MiB" OR_NONE,             \
      MIB(1), NONE, MIB(1), KIB(4), KIB(4), KIB(4))                                                          \
    OWN(packed_bytes, , , LATER, FROM_OR_NONE(1, HK_PACKED_MOST), "up to 16 MiB" OR_NONE,                    \
      MIB(2), NONE, KIB(256), MIB(2), MIB(2), MIB(2))                                                        \
    OWN(first_offset, , , ONCE, STEPS(16, 48), "0, 16, 32 or 48",                                            \
      0, 0, 0, 0, 0, 0)                                                                                      \
    HEAP(big_cache, big.cache, 0, LATER, ANY, "any",                                                         \
      MIB(16), NONE, MIB(256), MIB(2), MIB(16), MIB(2))                                                      \
    HEAP(units_ahead, owned.aside.most, 0, LATER, FROM_OR_NONE(2, 64), "2 to 64" OR_NONE,                    \
      16, NONE, 64, NONE, 16, NONE)                                                                          \
    HEAP(populate_from, populate_from, HK_POPULATE_NEVER, LATER, FROM_OR_NONE(1, 254), "1 to 254" OR_NONE,   \
      16, NONE, 2, 16, 16, 16)                                                                               \
    SPACE(retained_bytes, retained_bytes, 0, LATER, ANY, "any",                                              \
      MIB(32), NONE, MIB(256), MIB(4), MIB(32), MIB(4))                                                      \
    SPACE(retained_percent, retained_percent, 0, LATER, FROM_OR_NONE(1, 1000), "1 to 1000" OR_NONE,          \
      50, NONE, 100, NONE, 50, NONE)                                                                         \
    SPACE(purge_ns, purge_ns, HAK_NONE, LATER, ANY, "1 on",                                                  \
      SEC(1), SEC(1), SEC(10), SEC(1), SEC(1), SEC(1))                                                       \
    SPACE(huge_from, huge_from, HAK_NONE, LATER, ANY, "1 on",                                                \
      MIB(64), NONE, MIB(1), NONE, MIB(64), NONE)                                                            \
    SPACE(retained_yields, retained_yields, 0, LATER, FROM_OR_NONE(1, 1), "1" OR_NONE,                       \
      NONE, NONE, NONE, 1, NONE, 1)                                                                          \
    HEAP(expected_bytes, settings.expected, 0, LATER, ANY, "1 on",                                           \
      NONE, NONE, NONE, NONE, NONE, NONE)                                                                    \
    OWN(guard_every, , , LATER, FROM(1, MIB(1024)), "1 to 2^30",                                             \
      5000, 5000, 5000, 5000, 5000, 5000)                                                                    \
    SPACE(guard_slots, guard_slots, HAK_NONE, LATER, FROM(1, HK_GUARD_SLOTS_MOST), "1 to 65536",             \
      64, 64, 64, 64, 64, 64)                                                                                \
    OWN(slab_sizes, , , ONCE, ANY, "any",                                                                    \
      NONE, NONE, NONE, NONE, NONE, NONE)
/* clang-format on */

#define HK_EACH_SETTING(S) HK_SETTINGS(S, S, S)
#define HK_NOT_HERE(...)
#define HK_NUMBER_OF(name, ...) HK_SETTING_##name,
/* The words of a hak_tuning: `size`, then the settings. */
enum { HK_SETTING_size, HK_EACH_SETTING(HK_NUMBER_OF) HK_SETTING_WORDS };

enum { HK_MODES = HAK_MODE_RESEARCH + 1 };

/* By number, from 1. */
const char *hk_setting_name(unsigned i);
size_t hk_setting_get(const hak_tuning *t, unsigned i);
void hk_setting_set(hak_tuning *t, unsigned i, size_t v);
/* What is wrong with the value, "tuning.NAME: ..."; NULL = nothing. */
const char *hk_setting_wrong(unsigned i, size_t v);

/* The defaults of a mode and a workload, which are ones. */
const hak_tuning *hk_settings_default(hak_mode mode, hak_workload workload);
/* Copies what a host gave, of any version, without defaults. Returns what is wrong with it; NULL = nothing.
 */
const char *hk_settings_copy(hak_tuning *to, const hak_tuning *given);
/* All settings by the host's options: `to`, or a constant where `host` is NULL. *given: a bit for each that
 * the host gave. NULL = *error says what is wrong. */
const hak_tuning *hk_settings_read(hak_tuning *to, const hak_tuning *host, hak_mode mode,
                                   hak_workload workload, uint32_t *given, const char **error);

/* Whether a caller's struct can be written to. */
HK_INLINE bool hk_tuning_fits(const hak_tuning *t)
{
    return hk_sized_fits(t->size, sizeof *t) && t->size % sizeof t->size == 0;
}

/* What is kept for a setting, and back. */
HK_INLINE size_t hk_setting_kept(size_t v, size_t none)
{
    return v == HAK_NONE ? none : v;
}
HK_INLINE size_t hk_setting_shown(size_t kept, size_t none)
{
    return kept == none ? HAK_NONE : kept;
}

#endif

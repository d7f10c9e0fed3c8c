#include "base/tuning.h"

#define NONE HAK_NONE
#define KIB(n) ((size_t)(n) << 10)
#define MIB(n) ((size_t)(n) << 20)
#define MS(n) ((uint64_t)(n)*1000000u)

enum { WORKLOADS = HAK_WORKLOAD_MALLOC + 1, GUARD_EVERY = 5000, GUARD_SLOTS = 64 };
_Static_assert(sizeof(hak_tuning) == HK_TUNING_FIELDS * sizeof(size_t) && sizeof(uint64_t) == sizeof(size_t),
               "a tuning is an array of words");

/* A program that counts references frees in bursts and takes the same sizes again at once: deep magazines for
 * small blocks. Its buffers of other sizes come rarely. first_offset is 0 by default. */
#define ROW(magazine, most, packed, big, ahead, populate, retained, percent, ns, huge, yields)               \
    {                                                                                                        \
        sizeof(hak_tuning), magazine, most, packed, 0, big, ahead, populate, retained, percent, ns, huge,    \
            yields, NONE, GUARD_EVERY, GUARD_SLOTS, NONE                                                     \
    }
#define BALANCED(magazine, most)                                                                             \
    ROW(magazine, most, MIB(2), MIB(16), 16, 16, MIB(32), 50, MS(1000), MIB(64), NONE)
#define BALANCEDS                                                                                            \
    {                                                                                                        \
        BALANCED(32, MIB(1)), BALANCED(128, KIB(4)), BALANCED(32, MIB(1))                                    \
    }
#define MINIMAL ROW(NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, MS(1000), NONE, NONE)
#define FAST ROW(128, MIB(1), KIB(256), MIB(256), 64, 2, MIB(256), 100, MS(10000), MIB(1), NONE)
#define LEAN(magazine) ROW(magazine, KIB(4), MIB(2), MIB(2), NONE, 16, MIB(4), NONE, MS(1000), NONE, 1)

static const hak_tuning presets[HK_MODES][WORKLOADS] = {
    [HAK_MODE_BALANCED] = BALANCEDS,      [HAK_MODE_MINIMAL] = {MINIMAL, MINIMAL, MINIMAL},
    [HAK_MODE_FAST] = {FAST, FAST, FAST}, [HAK_MODE_LEAN] = {LEAN(32), LEAN(128), LEAN(32)},
    [HAK_MODE_LEARNING] = BALANCEDS,      [HAK_MODE_RESEARCH] = BALANCEDS,
};

static const char names[HK_TUNING_FIELDS][HK_TUNING_NAME] = {
    "size",        "magazine",    "magazine_most",   "packed_bytes",   "first_offset",
    "big_cache",   "units_ahead", "populate_from",   "retained_bytes", "retained_percent",
    "purge_ns",    "huge_from",   "retained_yields", "expected_bytes", "guard_every",
    "guard_slots", "slab_sizes",
};

const char *hk_tuning_name(unsigned i)
{
    return names[i];
}

size_t hk_tuning_get(const hak_tuning *t, unsigned i)
{
    size_t v;
    memcpy(&v, (const char *)t + i * sizeof v, sizeof v);
    return v;
}

void hk_tuning_set(hak_tuning *t, unsigned i, size_t v)
{
    memcpy((char *)t + i * sizeof v, &v, sizeof v);
}

const hak_tuning *hk_tuning_preset(hak_mode mode, hak_workload workload)
{
    return &presets[mode][workload];
}

void hak_tuning_init(hak_tuning *t, size_t size)
{
    hk_sized_init(t, size);
}

/* The first n words but the size. Returns a bit for each that was there. */
static uint32_t complete(hak_tuning *t, const hak_tuning *preset, size_t n)
{
    uint32_t said = 0;
    for (unsigned i = 1; i < n; i++) {
        if (hk_tuning_get(t, i)) said |= UINT32_C(1) << i;
        else hk_tuning_set(t, i, hk_tuning_get(preset, i));
    }
    return said;
}

static bool known(hak_mode mode, hak_workload workload)
{
    return (unsigned)mode < HK_MODES && (unsigned)workload < WORKLOADS;
}

int hak_tuning_complete(hak_tuning *t, hak_mode mode, hak_workload workload)
{
    if (!known(mode, workload) || !hk_tuning_fits(t)) return -1;
    complete(t, &presets[mode][workload], hk_min(t->size, sizeof *t) / sizeof(size_t));
    return 0;
}

const hak_tuning *hk_tuning_said(hak_tuning *to, const hak_tuning *t, uint32_t said)
{
    hak_tuning_init(to, sizeof *to);
    for (unsigned i = 1; i < HK_TUNING_FIELDS; i++)
        if (said >> i & 1) hk_tuning_set(to, i, hk_tuning_get(t, i));
    return to;
}

static bool within(size_t n, size_t least, size_t most)
{
    return n == HAK_NONE || (n >= least && n <= most);
}

const char *hk_tuning_wrong(const hak_tuning *t)
{
    if (!within(t->magazine, 2, 128)) return "tuning.magazine: 2 to 128, or none (HAK_NONE)";
    if (!within(t->magazine_most, 8, HK_RUN_MAX))
        return "tuning.magazine_most: 8 to 1 MiB, or none (HAK_NONE)";
    if (!within(t->packed_bytes, 1, HK_PACKED_MOST))
        return "tuning.packed_bytes: up to 16 MiB, or none (HAK_NONE)";
    if (t->first_offset % 16 || t->first_offset > 48) return "tuning.first_offset: 0, 16, 32 or 48";
    if (!within(t->units_ahead, 2, 64)) return "tuning.units_ahead: 2 to 64, or none (HAK_NONE)";
    if (!within(t->populate_from, 1, 254)) return "tuning.populate_from: 1 to 254, or none (HAK_NONE)";
    if (!within(t->retained_percent, 1, 1000))
        return "tuning.retained_percent: 1 to 1000, or none (HAK_NONE)";
    if (!within(t->retained_yields, 1, 1)) return "tuning.retained_yields: 1, or none (HAK_NONE)";
    if (t->guard_every > (size_t)1 << 30) return "tuning.guard_every: 1 to 2^30";
    if (t->guard_slots > HK_GUARD_SLOTS_MOST) return "tuning.guard_slots: 1 to 65536";
    return NULL;
}

const hak_tuning *hk_tuning_read(hak_tuning *to, const hak_tuning *given, hak_mode mode,
                                 hak_workload workload, uint32_t *said, const char **error)
{
    *error = NULL;
    *said = 0;
    if ((unsigned)mode >= HK_MODES) *error = "mode: HAK_MODE_* only";
    else if ((unsigned)workload >= WORKLOADS) *error = "workload: HAK_WORKLOAD_* only";
    if (*error) return NULL;
    const hak_tuning *preset = &presets[mode][workload];
    if (!given) return preset;
    if (!hak_sized_copy(to, sizeof *to, given)) {
        *error = "tuning.size is not set, or more is set than is known";
        return NULL;
    }
    *said = complete(to, preset, HK_TUNING_FIELDS);
    *error = hk_tuning_wrong(to);
    return *error ? NULL : to;
}

#include "base/settings.h"

enum { WORKLOADS = HAK_WORKLOAD_MALLOC + 1 };
_Static_assert(sizeof(hak_tuning) == HK_SETTING_WORDS * sizeof(size_t) && sizeof(uint64_t) == sizeof(size_t),
               "a tuning is an array of words");
#define IN_ORDER(name, ...)                                                                                  \
    _Static_assert(offsetof(hak_tuning, name) == HK_SETTING_##name * sizeof(size_t), "rows are in order");
HK_EACH_SETTING(IN_ORDER)

#define NONE HAK_NONE
#define KIB(n) ((size_t)(n) << 10)
#define MIB(n) ((size_t)(n) << 20)
#define SEC(n) (UINT64_C(1000000000) * (n))

/* A program that counts references frees in bursts and takes the same sizes again at once: deep magazines for
 * small blocks. Its buffers of other sizes come rarely. */
#define BALANCED(name, in, none, when, range, words, balanced, ...) .name = balanced,
#define MINIMAL(name, in, none, when, range, words, b, minimal, ...) .name = minimal,
#define FAST(name, in, none, when, range, words, b, m, fast, ...) .name = fast,
#define LEAN(name, in, none, when, range, words, b, m, f, lean, ...) .name = lean,
#define COUNTED(name, in, none, when, range, words, b, m, f, l, counted, ...) .name = counted,
#define LEAN_COUNTED(name, in, none, when, range, words, b, m, f, l, c, counted) .name = counted,
/* clang-format off */
#define WITH(column) {.size = sizeof(hak_tuning), HK_EACH_SETTING(column)}
#define BY_WORKLOAD(column, counted) {WITH(column), WITH(counted), WITH(column)}

static const hak_tuning defaults[HK_MODES][WORKLOADS] = {
    [HAK_MODE_BALANCED] = BY_WORKLOAD(BALANCED, COUNTED), [HAK_MODE_MINIMAL] = BY_WORKLOAD(MINIMAL, MINIMAL),
    [HAK_MODE_FAST] = BY_WORKLOAD(FAST, FAST),            [HAK_MODE_LEAN] = BY_WORKLOAD(LEAN, LEAN_COUNTED),
    [HAK_MODE_LEARNING] = BY_WORKLOAD(BALANCED, COUNTED), [HAK_MODE_RESEARCH] = BY_WORKLOAD(BALANCED, COUNTED),
};
/* clang-format on */

#define NAME(name, ...) #name,
static const char names[HK_SETTING_WORDS][24] = {"size", HK_EACH_SETTING(NAME)};

const char *hk_setting_name(unsigned i)
{
    return names[i];
}

size_t hk_setting_get(const hak_tuning *t, unsigned i)
{
    size_t v;
    memcpy(&v, (const char *)t + i * sizeof v, sizeof v);
    return v;
}

void hk_setting_set(hak_tuning *t, unsigned i, size_t v)
{
    memcpy((char *)t + i * sizeof v, &v, sizeof v);
}

/* Ranges of v, and the end of what is said of one. */
#define FROM(least, most) (v >= (least) && v <= (most))
#define FROM_OR_NONE(least, most) (v == HAK_NONE || FROM(least, most))
#define STEPS(step, most) (v % (step) == 0 && v <= (most))
#define ANY true
#define OR_NONE ", or none (HAK_NONE)"

const char *hk_setting_wrong(unsigned i, size_t v)
{
    switch (i) {
#define RANGE(name, in, none, when, range, words, ...)                                                       \
    case HK_SETTING_##name:                                                                                  \
        return (range) ? NULL : "tuning." #name ": " words;
        HK_EACH_SETTING(RANGE)
    default:
        return NULL;
    }
}

const hak_tuning *hk_settings_default(hak_mode mode, hak_workload workload)
{
    return &defaults[mode][workload];
}

void hak_tuning_init(hak_tuning *t, size_t size)
{
    hk_sized_init(t, size);
}

/* Fills in the first n words but the size. Returns a bit for each that was there. */
static uint32_t complete(hak_tuning *t, const hak_tuning *from, size_t n)
{
    uint32_t given = 0;
    for (unsigned i = 1; i < n; i++) {
        if (hk_setting_get(t, i)) given |= UINT32_C(1) << i;
        else hk_setting_set(t, i, hk_setting_get(from, i));
    }
    return given;
}

int hak_tuning_complete(hak_tuning *t, hak_mode mode, hak_workload workload)
{
    if ((unsigned)mode >= HK_MODES || (unsigned)workload >= WORKLOADS || !hk_tuning_fits(t)) return -1;
    complete(t, &defaults[mode][workload], hk_min(t->size, sizeof *t) / sizeof(size_t));
    return 0;
}

const char *hk_settings_copy(hak_tuning *to, const hak_tuning *given)
{
    if (!hak_sized_copy(to, sizeof *to, given)) return "tuning.size is not set, or more is set than is known";
    const char *error = NULL;
    for (unsigned i = 1; i < HK_SETTING_WORDS && !error; i++) {
        size_t v = hk_setting_get(to, i);
        error = v ? hk_setting_wrong(i, v) : NULL;
    }
    return error;
}

const hak_tuning *hk_settings_read(hak_tuning *to, const hak_tuning *host, hak_mode mode,
                                   hak_workload workload, uint32_t *given, const char **error)
{
    *given = 0;
    *error = (unsigned)mode >= HK_MODES        ? "mode: HAK_MODE_* only"
             : (unsigned)workload >= WORKLOADS ? "workload: HAK_WORKLOAD_* only"
             : host                            ? hk_settings_copy(to, host)
                                               : NULL;
    if (*error) return NULL;
    if (!host) return &defaults[mode][workload];
    *given = complete(to, &defaults[mode][workload], HK_SETTING_WORDS);
    return to;
}

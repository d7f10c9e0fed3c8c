#include "common/size.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

__extension__ typedef unsigned __int128 wide;

/* strcasecmp heeds the locale: in Turkish an I is not the large i. lower: letters a to z alone. */
static bool is_word(const char *text, const char *lower)
{
    for (; *lower; text++, lower++)
        if (*text != *lower && *text != *lower - 'a' + 'A') return false;
    return !*text;
}

/* The power of two of a unit: none, K, M, G or T, each also with B, i or iB; -1 = none of these. */
static int shift_of(const char *unit)
{
    static const char lower[] = "kmgt", upper[] = "KMGT";
    if (!*unit) return 0;
    const char *found = strchr(lower, *unit), *larger = strchr(upper, *unit);
    if (!found && !larger) return -1;
    if (unit[1] && !is_word(unit + 1, "b") && !is_word(unit + 1, "i") && !is_word(unit + 1, "ib")) return -1;
    return 10 * (int)((found ? found - lower : larger - upper) + 1);
}

const char *hkc_size_parse(const char *text, size_t *out)
{
    static const char none[] =
        "is no size; a size is 1000, 64K, 512M or 1.5G (also MB, Mi, MiB; 1K is 1024 bytes)";
    static const char far[] = "is more than addresses reach";
    /* A fraction has as many digits as 1 << 40 of its parts, of 2^64 at most, leave room for. */
    enum { WHOLE_DIGITS = 20, FRACTION_DIGITS = 9 };
    const char *p = text;
    wide whole = 0, fraction = 0, parts = 1;
    while (*p >= '0' && *p <= '9' && p - text < WHOLE_DIGITS)
        whole = whole * 10 + (unsigned)(*p++ - '0');
    if (p == text) return none;
    bool fractional = *p == '.';
    if (fractional) {
        const char *point = p++;
        while (*p >= '0' && *p <= '9' && p - point <= FRACTION_DIGITS) {
            fraction = fraction * 10 + (unsigned)(*p++ - '0');
            parts *= 10;
        }
        if (parts == 1) return none;
    }
    int shift = shift_of(p);
    if (shift < 0 || (fractional && shift == 0)) return none;
    wide bytes = (whole << shift) + (fraction << shift) / parts;
    if (bytes > SIZE_MAX) return far;
    /* No limit at all is 0, and never a part of a byte. */
    if (bytes == 0 && fraction > 0) return none;
    *out = (size_t)bytes;
    return NULL;
}

const char *hkc_reserve_parse(const char *text, size_t *out)
{
    const size_t RESERVE_LEAST = (size_t)4 << 20, RESERVE_MOST = (size_t)1 << 40;
    size_t size = 0;
    const char *wrong = hkc_size_parse(text, &size);
    if (!wrong && (size < RESERVE_LEAST || size > RESERVE_MOST))
        wrong = "is out of range: a size from 4M to 1T expected";
    if (!wrong) *out = size;
    return wrong;
}

const char *hkc_window_parse(const char *text, uint64_t *out)
{
    static const char none[] = "is no time; a time is 60s, 5m, 1h or 500ms, 1ms to 365 days, or off";
    static const struct {
        const char *name;
        uint64_t ns;
    } units[] = {{"", UINT64_C(1000000000)},     {"s", UINT64_C(1000000000)},
                 {"ms", UINT64_C(1000000)},      {"m", UINT64_C(60000000000)},
                 {"min", UINT64_C(60000000000)}, {"h", UINT64_C(3600000000000)},
                 {"d", UINT64_C(86400000000000)}};
    const uint64_t most = 365 * UINT64_C(86400000000000);
    uint64_t n = 0;
    const char *p = text;
    if (is_word(text, "off")) {
        *out = 0;
        return NULL;
    }
    while (*p >= '0' && *p <= '9' && n <= most)
        n = n * 10 + (uint64_t)(*p++ - '0');
    for (size_t i = 0; i < sizeof units / sizeof *units && p != text && n != 0; i++) {
        if (strcmp(p, units[i].name) != 0 || n > most / units[i].ns) continue;
        *out = n * units[i].ns;
        return NULL;
    }
    return none;
}

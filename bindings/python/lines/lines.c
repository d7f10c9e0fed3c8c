#include "lines/lines.h"

static hkp_line_walk from(const hkp_line_walk *walk, intptr_t offset)
{
    return offset >= walk->reached ? *walk : (hkp_line_walk){0};
}

/* Pairs of bytes: how far the range goes, and the step to its line; -128 = it has none. */
int hkp_line_3_10(const uint8_t *table, size_t size, int first, intptr_t offset, hkp_line_walk *walk)
{
    if (offset < 0) return first;
    for (hkp_line_walk w = from(walk, offset); w.at + 1 < size; w.at += 2) {
        int step = (int8_t)table[w.at + 1], line = w.line + (step != -128 ? step : 0);
        if (offset < w.reached + table[w.at]) {
            *walk = w;
            return step != -128 ? first + line : 0;
        }
        w.reached += table[w.at];
        w.line = line;
    }
    return first;
}

/* A signed number of 6 bits a byte, lowest first, its sign in the lowest bit. */
static int signed_number(const uint8_t *p, const uint8_t *end)
{
    unsigned value = 0, shift = 0;
    while (p < end && shift < 30) {
        value |= (unsigned)(*p & 63) << shift;
        shift += 6;
        if (!(*p++ & 64)) break;
    }
    return value & 1 ? -(int)(value >> 1) : (int)(value >> 1);
}

/* Entries begin with a byte that has bit 7: 4 bits of form, 3 bits of length in code units. */
int hkp_line_3_11(const uint8_t *table, size_t size, int first, intptr_t offset, hkp_line_walk *walk)
{
    enum { NO_COLUMNS = 13, LONG = 14, NONE = 15 };
    /* of each form: its bytes, or how many there are at least, and the step to its line if that is known */
    static const uint8_t bytes[] = {2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 3, 3, 3, 2, 5, 1};
    static const uint8_t steps[] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 0, 0, 0};
    if (offset < 0) return first;
    const uint8_t *end = table + size;
    hkp_line_walk w = from(walk, offset);
    for (const uint8_t *p = table + w.at; p < end;) {
        unsigned head = *p, form = head >> 3 & 15;
        int line = w.line + steps[form];
        if (form == NO_COLUMNS || form == LONG) line += signed_number(p + 1, end);
        intptr_t next = w.reached + 2 * ((intptr_t)(head & 7) + 1);
        if (offset < next) {
            *walk = (hkp_line_walk){(size_t)(p - table), w.reached, w.line};
            return form != NONE ? first + line : 0;
        }
        w.reached = next;
        w.line = line;
        p += bytes[form];
        while (p < end && !(*p & 0x80))
            p++;
    }
    return first;
}

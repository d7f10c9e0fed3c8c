#include "lines.h"

static hk_py_line_walk from(const hk_py_line_walk *walk, intptr_t offset)
{
    return offset >= walk->reached ? *walk : (hk_py_line_walk){0};
}

/* Pairs of bytes: how far the range goes, and the step to its line; -128 = it has none. */
int hk_py_line_3_10(const uint8_t *table, size_t size, int first, intptr_t offset, hk_py_line_walk *walk)
{
    if (offset < 0) return first;
    for (hk_py_line_walk w = from(walk, offset); w.at + 1 < size; w.at += 2) {
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
int hk_py_line_3_11(const uint8_t *table, size_t size, int first, intptr_t offset, hk_py_line_walk *walk)
{
    enum { NO_COLUMNS = 13, LONG = 14, NONE = 15, ONE_LINE = 10 };
    if (offset < 0) return first;
    for (hk_py_line_walk w = from(walk, offset); w.at < size;) {
        const uint8_t *p = table + w.at, *end = table + size;
        unsigned form = *p >> 3 & 15;
        int line = w.line;
        if (form == NO_COLUMNS || form == LONG) line += signed_number(p + 1, end);
        else if (form >= ONE_LINE && form < NO_COLUMNS) line += (int)form - ONE_LINE;
        intptr_t next = w.reached + 2 * ((*p & 7) + 1);
        if (offset < next) {
            *walk = w;
            return form != NONE ? first + line : 0;
        }
        w.reached = next;
        w.line = line;
        do
            w.at++;
        while (w.at < size && !(table[w.at] & 0x80));
    }
    return first;
}

#include "lines.h"

/* Pairs of bytes: how far the range goes, and the step to its line; -128 = it has none. */
int hk_py_line_3_10(const uint8_t *table, size_t size, int first, intptr_t offset)
{
    intptr_t end = 0;
    int line = first;
    if (offset < 0) return first;
    for (size_t i = 0; i + 1 < size; i += 2) {
        int step = (int8_t)table[i + 1];
        if (step != -128) line += step;
        end += table[i];
        if (offset < end) return step != -128 ? line : 0;
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
int hk_py_line_3_11(const uint8_t *table, size_t size, int first, intptr_t offset)
{
    enum { NO_COLUMNS = 13, LONG = 14, NONE = 15, ONE_LINE = 10 };
    const uint8_t *p = table, *end = table + size;
    intptr_t reached = 0;
    int line = first;
    if (offset < 0) return first;
    while (p < end) {
        unsigned form = *p >> 3 & 15;
        reached += 2 * ((*p & 7) + 1);
        if (form == NO_COLUMNS || form == LONG) line += signed_number(p + 1, end);
        else if (form >= ONE_LINE && form < NO_COLUMNS) line += (int)form - ONE_LINE;
        if (offset < reached) return form != NONE ? line : 0;
        do
            p++;
        while (p < end && !(*p & 0x80));
    }
    return first;
}

/* Line tables of code objects: from the number of a byte of code to its line. */
#ifndef HKP_LINES_H
#define HKP_LINES_H

#include <stddef.h>
#include <stdint.h>

/* Where a search in a table ended, so that the next one, for a place behind it, goes on from there; zero = at
 * the beginning. */
typedef struct hkp_line_walk {
    size_t at;
    intptr_t reached; /* the offset of the entry at `at` */
    int line;         /* before it, less the first */
} hkp_line_walk;

/* `first` where the offset is before the code or nowhere; 0 = a place without a line. */
int hkp_line_3_10(const uint8_t *table, size_t size, int first, intptr_t offset, hkp_line_walk *walk);
/* 3.11 and later: the table also has columns. */
int hkp_line_3_11(const uint8_t *table, size_t size, int first, intptr_t offset, hkp_line_walk *walk);

#endif

/* Line tables of code objects: from the number of a byte of code to its line. */
#ifndef HK_PY_LINES_H
#define HK_PY_LINES_H

#include <stddef.h>
#include <stdint.h>

/* `first` where the offset is before the code or nowhere; 0 = a place without a line. */
int hk_py_line_3_10(const uint8_t *table, size_t size, int first, intptr_t offset);
/* 3.11 and later: the table also has columns. */
int hk_py_line_3_11(const uint8_t *table, size_t size, int first, intptr_t offset);

#endif

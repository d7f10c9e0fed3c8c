/* JSON output, as far as a report needs it. */
#ifndef HK_PY_JSON_H
#define HK_PY_JSON_H

#include <stddef.h>
#include <stdio.h>

/* With quotes. Bytes that are no UTF-8 are for the reader to replace. */
void hk_py_json_string(FILE *out, const char *text);
/* `"name":n`, with a comma before it unless it is the first after a brace. */
void hk_py_json_size(FILE *out, const char *comma, const char *name, size_t n);

#endif

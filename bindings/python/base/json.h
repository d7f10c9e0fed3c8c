/* Text of a report, as JSON or for people: into a file or into memory. Without stdio and malloc, whose locks may be held by
 * others for ever where a report is written by a copy of the process. */
#ifndef HKP_OUT_H
#define HKP_OUT_H

#include "base/core.h"

typedef struct hkp_out {
    char *bytes; /* NULL = no memory */
    size_t used, size;
    int fd;    /* -1 = it stays in memory, which grows */
    int error; /* errno of the first failure; 0 = none */
} hkp_out;

HKP_API void hkp_out_open(hkp_out *out, int fd);
HKP_API void hkp_out_text(hkp_out *out, const char *text);
void hkp_out_bytes(hkp_out *out, const char *bytes, size_t n);
/* At most 255 bytes. */
HKP_API void hkp_out_format(hkp_out *out, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* With quotes. Bytes that are no UTF-8 are for the reader to replace. */
void hkp_out_string(hkp_out *out, const char *text);
/* `"name":n`, with a comma before it unless it is the first after a brace. */
void hkp_out_size(hkp_out *out, const char *comma, const char *name, size_t n);
/* What is left goes to the file, which is not closed. Returns `error`. */
int hkp_out_flush(hkp_out *out);
/* Gives the memory back. */
HKP_API void hkp_out_close(hkp_out *out);

#endif

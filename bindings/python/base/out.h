/* Text, into a file or into memory: reports for people, and JSON of common/json.h in memory. Without stdio
 * and malloc, whose locks may be held by others for ever where a report is written by a copy of the
 * process. */
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
HKP_API void hkp_out_bytes(hkp_out *out, const char *bytes, size_t n);
/* At most 255 bytes. */
HKP_API void hkp_out_format(hkp_out *out, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* What is left goes to the file, which is not closed. Returns `error`. */
int hkp_out_flush(hkp_out *out);
/* Gives the memory back. */
HKP_API void hkp_out_close(hkp_out *out);

#endif

/* Names of C++ and Rust as they stand in the source, from those of a symbol table. */
#ifndef HKR_NAMES_H
#define HKR_NAMES_H

#include <stddef.h>

/* What the names of one report have taken. */
typedef struct hkr_names {
    double seconds; /* of the processor, those that were left as they are included */
    size_t bytes;
} hkr_names;

enum { HKR_NAME = 16384, HKR_NAMES_SECONDS = 4, HKR_NAMES_BYTES = 1 << 28 };

/* NULL = it is as it stands in the source, would be longer than HKR_NAME, takes too long, or no more is
 * allowed to the names of the report. The text stays until the next call. */
const char *hkr_plain_name(hkr_names *names, const char *mangled);

#endif

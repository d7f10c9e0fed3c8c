/* Sizes as people write them, the same in all bindings. */
#ifndef HKC_SIZE_H
#define HKC_SIZE_H

#include <stddef.h>

/* Bytes: 1000, 64K, 512MB, 1.5GiB; units up to T are powers of 1024, in letters of any case. NULL = it is in
 * `out`, else why the text is none, to follow the text in a message. Allocates nothing, heeds no locale. */
const char *hkc_size_parse(const char *text, size_t *out);

#endif

/* Sizes and times as people write them, the same in all bindings. */
#ifndef HKC_SIZE_H
#define HKC_SIZE_H

#include <stddef.h>
#include <stdint.h>

/* Bytes: 1000, 64K, 512MB, 1.5GiB; units up to T are powers of 1024, in letters of any case. NULL = it is in
 * `out`, else why the text is none, to follow the text in a message. Allocates nothing, heeds no locale. */
const char *hkc_size_parse(const char *text, size_t *out);

/* Address space to reserve at the start, 4M to 1T. NULL, or why it is none, as above. */
const char *hkc_reserve_parse(const char *text, size_t *out);
/* How long a window of a profile is, in nanoseconds: 90 or 90s, 5m, 1h, 500ms; off = 0. From 1 ms to 365 days. NULL,
 * or why it is none, as above. */
const char *hkc_window_parse(const char *text, uint64_t *out);
/* Where nothing was said. */
#define HKC_WINDOW_NS UINT64_C(60000000000)

#endif

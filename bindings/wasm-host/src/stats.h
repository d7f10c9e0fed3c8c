/* Structs that tell something, to callers of any version of a header. */
#ifndef HAKMEM_WASM_STATS_H
#define HAKMEM_WASM_STATS_H

#include <stddef.h>

/* Copies what the caller knows of *info, by the size at the beginning of *out: fewer members, or zeros behind the
 * `known` bytes. Returns 0, or -1 if that size is impossible. */
int hkw_tell(void *out, const void *info, size_t known);

#endif

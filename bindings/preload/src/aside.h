/* Programs that the shim does not serve: a sanitizer, or the program itself, has an allocator that goes
 * before. */
#ifndef HKS_PRELOAD_ASIDE_H
#define HKS_PRELOAD_ASIDE_H

#include <hakmem/hakmem.h>

#include <stdbool.h>
#include <stddef.h>

/* Whether the program was built with a sanitizer that has malloc. What reaches the shim then goes to the
 * sanitizer, which does not bear calls of libc before it has begun, as the shim makes them. Safe at any
 * time. */
bool hks_aside(void);
/* Those of the sanitizer; only where hks_aside says so. */
void *hks_aside_malloc(size_t n);
void *hks_aside_calloc(size_t n);
void *hks_aside_realloc(void *p, size_t n);
void *hks_aside_aligned(size_t align, size_t n);
void hks_aside_free(void *p);
size_t hks_aside_usable(void *p);

/* The file whose malloc the program has in place of the shim's; NULL = it has the shim's. ctx: that of the
 * shim. Not before the constructors. */
const char *hks_aside_other(const hak_ctx *ctx);

/* The name of an allocator that is linked into the program under names of its own, as redis has it from its
 * sources; NULL = none is known. Reads what of the program is read-only. */
const char *hks_aside_inside(void);

#endif

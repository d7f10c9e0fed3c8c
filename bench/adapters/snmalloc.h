/* snmalloc by the C functions of its Rust library. It has no call that returns memory. */
#ifndef BENCH_ADAPTER_SNMALLOC_H
#define BENCH_ADAPTER_SNMALLOC_H

#include <stddef.h>

#define BA_HAS_CTX 0
#define BA_HAS_BUFFER 0

void *sn_malloc(size_t n);
void sn_free(void *p);
void *sn_realloc(void *p, size_t n);

#define BA_MALLOC sn_malloc
#define BA_FREE sn_free
#define BA_REALLOC sn_realloc
#include "calls.h"
#include "no_setup.h"

static inline const char *ba_version(void)
{
    return BENCH_PEER_VERSION;
}
static inline void ba_trim(void)
{
}

#endif

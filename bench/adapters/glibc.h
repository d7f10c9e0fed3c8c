#ifndef BENCH_ADAPTER_GLIBC_H
#define BENCH_ADAPTER_GLIBC_H

#include <gnu/libc-version.h>
#include <malloc.h>

#include "malloc_names.h"

#define BA_HAS_CTX 0
#define BA_HAS_BUFFER 0

static inline const char *ba_version(void)
{
    return gnu_get_libc_version();
}
static inline void ba_trim(void)
{
    malloc_trim(0);
}

#endif

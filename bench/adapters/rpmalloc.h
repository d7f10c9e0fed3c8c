/* rpmalloc, without its first-class heaps, which would slow every other row. */
#ifndef BENCH_ADAPTER_RPMALLOC_H
#define BENCH_ADAPTER_RPMALLOC_H

#include <rpmalloc.h>

#define BA_MALLOC rpmalloc
#define BA_FREE rpfree
#define BA_REALLOC rprealloc
#include "calls.h"

#define BA_HAS_CTX 0
#define BA_HAS_BUFFER 0

static inline const char *ba_version(void)
{
    return BENCH_PEER_VERSION;
}
static inline void ba_init(void)
{
    rpmalloc_initialize();
}
static inline void ba_thread_begin(size_t lane)
{
    (void)lane;
    rpmalloc_thread_initialize();
}
static inline void ba_thread_end(void)
{
    rpmalloc_thread_finalize(1);
}
static inline void ba_trim(void)
{
    rpmalloc_thread_collect();
}

#endif

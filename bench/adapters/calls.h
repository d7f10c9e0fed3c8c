/* For allocators whose free takes no size. An adapter defines BA_MALLOC, BA_FREE and BA_REALLOC, then
 * includes this. */
#ifndef BENCH_ADAPTER_CALLS_H
#define BENCH_ADAPTER_CALLS_H

#include <stddef.h>

static inline void *ba_alloc(size_t n)
{
    return BA_MALLOC(n);
}
static inline void ba_free(void *p, size_t n)
{
    (void)n;
    BA_FREE(p);
}
static inline void *ba_realloc(void *p, size_t old, size_t n)
{
    (void)old;
    return BA_REALLOC(p, n);
}
static inline void ba_tick(void)
{
}

#endif

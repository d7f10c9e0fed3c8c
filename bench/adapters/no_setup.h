/* For allocators without a call for the start of the program and for threads that begin and end. */
#ifndef BENCH_ADAPTER_NO_SETUP_H
#define BENCH_ADAPTER_NO_SETUP_H

#include <stddef.h>

static inline void ba_init(void)
{
}
static inline void ba_thread_begin(size_t lane)
{
    (void)lane;
}
static inline void ba_thread_end(void)
{
}

#endif

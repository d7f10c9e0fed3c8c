/* The monotonic clock in milliseconds, for how long something may take. */
#ifndef HKC_CLOCK_H
#define HKC_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline int64_t hkc_milliseconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

#endif

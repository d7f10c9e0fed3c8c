#include "common/costs.h"

#define WIN32_LEAN_AND_MEAN
#include <windows.h>

/* In steps of 1 to 16 ms. */
uint64_t hkc_costs_cpu_ns(void)
{
    FILETIME made, ended, kernel, user;
    if (!GetProcessTimes(GetCurrentProcess(), &made, &ended, &kernel, &user)) return 0;
    const uint64_t in_kernel = (uint64_t)kernel.dwHighDateTime << 32 | kernel.dwLowDateTime;
    return (in_kernel + ((uint64_t)user.dwHighDateTime << 32 | user.dwLowDateTime)) * 100;
}

/* The clocks of threads are too coarse for a page: the learner's own numbers stay. */
void hkc_costs_measure(hak_learner_options *options)
{
    (void)options;
}

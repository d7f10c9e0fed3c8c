/* Draws bytes for samples, and computes what a sample stands for. */
#include "profile/profile.h"

#include "base/random.h"
#include "base/real.h"

double hk_profile_uniform(hk_profile *k)
{
    return (double)((hk_random_next(&k->random) >> 11) + 1) / (double)(UINT64_C(1) << 53);
}

int64_t hk_profile_draw(hk_profile *k)
{
    return k->exact ? 0 : (int64_t)(-hk_log(hk_profile_uniform(k)) * (double)k->mean);
}

/* 1 - exp(-x), also for small x: of x halved often enough by the series, then doubled. */
static double share_drawn(double x)
{
    if (x > 40) return 1;
    unsigned halved = 0;
    for (; x > 1.0 / 16; x /= 2)
        halved++;
    double y = x * (1 - x / 2 * (1 - x / 3 * (1 - x / 4 * (1 - x / 5 * (1 - x / 6 * (1 - x / 7))))));
    for (; halved; halved--)
        y = y * (2 - y);
    return y;
}

double hk_profile_weight(const hk_profile *k, size_t n)
{
    return k->exact ? 1 : 1 / share_drawn((double)n / (double)k->mean);
}

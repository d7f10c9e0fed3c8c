/* Which bytes are drawn, and what a sample stands for. Without libm: the core links none. */
#include "profile/profile.h"

/* splitmix64 (Steele, Lea, Flood, "Fast splittable pseudorandom number generators", 2014). */
static uint64_t next(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9E3779B97F4A7C15);
    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
    return z ^ (z >> 31);
}

/* Of n in [1, 2^53], less ln(2^53): n = 2^e m, and ln m by the series of atanh((m - 1) / (m + 1)). */
static double log_of(uint64_t n)
{
    const double ln2 = 0.69314718055994530942, sqrt2 = 1.41421356237309504880;
    unsigned e = hk_log2(n);
    double m = (double)n / (double)(UINT64_C(1) << e);
    if (m > sqrt2) {
        m /= 2;
        e++;
    }
    double s = (m - 1) / (m + 1), square = s * s, sum = 0;
    for (int k = 17; k > 0; k -= 2)
        sum = sum * square + 1.0 / k;
    return 2 * s * sum + ((double)e - 53) * ln2;
}

int64_t hk_profile_draw(hk_profile *k)
{
    if (k->exact) return 0;
    double bytes = -log_of((next(&k->random) >> 11) + 1) * (double)k->mean;
    return (int64_t)bytes;
}

/* 1 - exp(-x), also for small x: of x halved often enough by the series, then doubled. */
static double share_of(double x)
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
    return k->exact ? 1 : 1 / share_of((double)n / (double)k->mean);
}

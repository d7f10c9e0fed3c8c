#include "base/real.h"

#include <stdint.h>
#include <string.h>

/* Newton's iteration from above: each step falls, until the root is reached. */
double hk_root(double x)
{
    if (!(x > 0)) return 0;
    double r = x > 1 ? x : 1;
    for (double next = (r + x / r) / 2; next < r; next = (r + x / r) / 2)
        r = next;
    return r;
}

/* x = 2^e m, and ln m by the series of atanh((m - 1) / (m + 1)). */
double hk_log(double x)
{
    const double ln2 = 0.69314718055994530942, sqrt2 = 1.41421356237309504880;
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    int e = (int)(bits >> 52) - 1023;
    bits = (bits & UINT64_C(0xFFFFFFFFFFFFF)) | UINT64_C(0x3FF0000000000000);
    double m;
    memcpy(&m, &bits, sizeof m);
    if (m > sqrt2) {
        m /= 2;
        e++;
    }
    double s = (m - 1) / (m + 1), square = s * s, sum = 0;
    for (int k = 17; k > 0; k -= 2)
        sum = sum * square + 1.0 / k;
    return 2 * s * sum + e * ln2;
}

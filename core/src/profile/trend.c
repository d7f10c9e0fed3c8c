/* The slope of Theil and Sen is the median of the slopes of all pairs of points (Sen, "Estimates of the
 * regression coefficient based on Kendall's tau", 1968). It is robust against outliers, and assumes no
 * distribution. */
#include "profile/trend.h"

#include "base/real.h"

enum { PAIRS_MOST = HK_TREND_MOST * (HK_TREND_MOST - 1) / 2 };

static void sort(double *a, size_t n)
{
    for (size_t gap = n / 2; gap; gap /= 2)
        for (size_t i = gap; i < n; i++) {
            double x = a[i];
            size_t at = i;
            for (; at >= gap && a[at - gap] > x; at -= gap)
                a[at] = a[at - gap];
            a[at] = x;
        }
}

hk_trend hk_trend_of(const double *x, const double *y, size_t n)
{
    double slopes[PAIRS_MOST];
    size_t pairs = 0;
    for (size_t i = 0; i < n; i++)
        for (size_t j = i + 1; j < n; j++)
            if (x[j] > x[i]) slopes[pairs++] = (y[j] - y[i]) / (x[j] - x[i]);
    if (pairs == 0) return (hk_trend){0};
    sort(slopes, pairs);
    double count = (double)n, wide = 1.96 * hk_root(count * (count - 1) * (2 * count + 5) / 18);
    double low = ((double)pairs - wide) / 2, high = ((double)pairs + wide) / 2;
    return (hk_trend){
        .slope = pairs % 2 ? slopes[pairs / 2] : (slopes[pairs / 2 - 1] + slopes[pairs / 2]) / 2,
        .low = slopes[low > 0 ? (size_t)low : 0],
        .high = slopes[high < (double)pairs ? (size_t)high : pairs - 1],
    };
}

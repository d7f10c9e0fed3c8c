/* Trends of a few points, by the slope of Theil and Sen. */
#ifndef HK_TREND_H
#define HK_TREND_H

#include <stddef.h>

enum { HK_TREND_MOST = 33 };

/* The median of the slopes of all pairs of points, and its interval of 95 %; all 0 where no two points differ
 * in x. */
typedef struct hk_trend {
    double slope, low, high;
} hk_trend;

/* Returns the trend of y over x, which does not fall. n: 2 to HK_TREND_MOST points. */
hk_trend hk_trend_of(const double *x, const double *y, size_t n);

#endif

/* Which stacks grow. A slope by Theil and Sen (the median of the slopes of all pairs of windows, after Sen,
 * "Estimates of the regression coefficient based on Kendall's tau", 1968) bears outliers, and asks for no
 * distribution; a leak is one that goes on to the end and whose old blocks are still there. */
#include "profile/profile.h"

#include "base/real.h"

#include <stdio.h>

enum { POINTS_MOST = 33, POINTS_LEAST = 6, PAIRS_MOST = POINTS_MOST * (POINTS_MOST - 1) / 2 };

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

static void slope(const double *y, size_t n, hak_profile_growth *out)
{
    double slopes[PAIRS_MOST];
    size_t pairs = 0;
    for (size_t i = 0; i < n; i++)
        for (size_t j = i + 1; j < n; j++)
            slopes[pairs++] = (y[j] - y[i]) / (double)(j - i);
    sort(slopes, pairs);
    double count = (double)n, wide = 1.96 * hk_root(count * (count - 1) * (2 * count + 5) / 18);
    double low = ((double)pairs - wide) / 2, high = ((double)pairs + wide) / 2;
    out->bytes_a_window = pairs % 2 ? slopes[pairs / 2] : (slopes[pairs / 2 - 1] + slopes[pairs / 2]) / 2;
    out->low = slopes[low > 0 ? (size_t)low : 0];
    out->high = slopes[high < (double)pairs ? (size_t)high : pairs - 1];
}

/* Of the blocks that were made before a window began. Counted, nothing says which ones live: at most what
 * lived then, and at most what lives now. */
static double freed_share(const hk_profile *k, const hk_stack *s, const hk_mark *m, double made)
{
    double live = k->counted ? hk_profile_value(k, s, m->number).live_blocks : 0;
    if (live > s->live_blocks) live = s->live_blocks;
    for (size_t i = 0; i < k->samples.count; i++)
        for (const hk_sample *b = k->samples.at[i]; b; b = b->next)
            if (b->stack == s && b->birth_ns <= m->at_ns) live += hk_profile_weight(k, b->eligible);
    double freed = made > 0 ? 1 - live / made : 1;
    return freed > 0 ? freed : 0;
}

static void tell(hak_profile_growth *g, double grown)
{
    snprintf(g->evidence, sizeof g->evidence,
             "grew by %.0f KiB over %u windows, %.0f to %.0f bytes each; %.0f %% of what was allocated in "
             "the first half is freed",
             grown / 1024, g->windows, g->low, g->high, g->freed_share * 100);
}

bool hk_profile_growth(hk_profile *k, const hk_stack *s, hak_profile_growth *out)
{
    if (!k->marks || s->live_samples == 0) return false;
    uint32_t last = k->marks->number + 1, first = last >= POINTS_MOST ? last - POINTS_MOST + 1 : 1;
    size_t n = last - first + 1;
    if (n < POINTS_LEAST) return false;
    double y[POINTS_MOST];
    hk_mark_value from = hk_profile_value(k, s, first), to = hk_profile_value(k, s, last);
    for (uint32_t i = 0; i < n; i++)
        y[i] = hk_profile_value(k, s, first + i).live_bytes;
    *out = (hak_profile_growth){.size = sizeof *out, .stack = s->id, .windows = (unsigned)(n - 1)};
    slope(y, n, out);
    if (!(out->low > 0)) return false;
    const hk_mark *middle = k->marks;
    while (middle->number > first + n / 2)
        middle = middle->before;
    out->freed_share = freed_share(k, s, middle, hk_profile_value(k, s, middle->number).alloc_blocks);
    double grown = y[n - 1] - y[0];
    double error = hk_root(to.alloc_var - from.alloc_var + to.freed_var - from.freed_var);
    /* What fills up and is full then does not grow at the end. */
    size_t tail = n / 3;
    bool goes_on = y[n - 1] - y[n - 1 - tail] >= out->bytes_a_window * (double)tail / 2;
    out->leak = goes_on && grown > 3 * error && out->freed_share <= 0.1;
    tell(out, grown);
    return true;
}

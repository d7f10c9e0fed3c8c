#include "latency.h"

static const double limits[LATENCY_BUCKETS - 1] = {0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05,
                                                   0.1,    0.25,  0.5,    1,     2.5,  10};

void latency_add(latency *l, double seconds)
{
    unsigned at = 0;
    while (at < LATENCY_BUCKETS - 1 && seconds > limits[at])
        at++;
    l->count[at]++;
    l->seconds += seconds;
}

void latency_write(const latency *l, const char *name, FILE *to)
{
    unsigned long sum = 0;
    for (unsigned i = 0; i < LATENCY_BUCKETS - 1; i++) {
        sum += l->count[i];
        fprintf(to, "%s_bucket{le=\"%g\"} %lu\n", name, limits[i], sum);
    }
    sum += l->count[LATENCY_BUCKETS - 1];
    fprintf(to, "%s_bucket{le=\"+Inf\"} %lu\n%s_sum %.6f\n%s_count %lu\n", name, sum, name, l->seconds, name,
            sum);
}

/* How long requests take: a histogram as Prometheus has them. */
#ifndef WASM_SERVER_LATENCY_H
#define WASM_SERVER_LATENCY_H

#include <stdint.h>
#include <stdio.h>

enum { LATENCY_BUCKETS = 14 };

/* All zero at first. For one thread at a time. */
typedef struct latency {
    uint64_t count[LATENCY_BUCKETS]; /* the last has all that took longer than any limit */
    double seconds;
} latency;

void latency_add(latency *l, double seconds);
/* Writes the lines of the metric `name`, without its head. */
void latency_write(const latency *l, const char *name, FILE *to);

#endif

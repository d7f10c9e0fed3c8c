/* hakmem push: the series of processes to an OpenTelemetry collector, again and again. */
#ifndef HKR_PUSH_H
#define HKR_PUSH_H

#include "report.h"

/* url: of the collector, "http://HOST:4318"; without a path it is that of metrics. named: as for hkr_serve().
 * Runs until SIGINT or SIGTERM; a collector that is away is told once, and asked again. Returns the exit status,
 * and has said what was wrong. */
int hkr_push(const char *url, double interval, char *const *named, size_t count);

#endif

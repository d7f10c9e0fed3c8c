/* The series of reports as OpenTelemetry's ExportMetricsServiceRequest, in its JSON encoding (OTLP 1.0). */
#ifndef HKR_OTLP_H
#define HKR_OTLP_H

#include "report.h"

/* nanoseconds: the time of the numbers, since 1970. A process is a resource. To be json_decref'ed; NULL = no
 * memory. */
json_t *hkr_otlp(hkr_report *const *reports, size_t count, uint64_t nanoseconds);

#endif

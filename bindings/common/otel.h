/* The probes of OpenTelemetry's memory profiler, for a profile's samples:
 *
 *     otel_memory:alloc(pointer, size, weight)    a block became a sample, which stands for `weight` bytes
 *     otel_memory:free(pointer)                   it is freed, moved, or has another owner
 *
 * A process without a profile has no samples, so that nothing on its allocation paths knows of probes. With a
 * profile each sample takes some ten instructions more where no tracer has attached. Without such probes on
 * this system nothing happens. */
#ifndef HKC_OTEL_H
#define HKC_OTEL_H

#include <hakmem/profile.h>

/* Lets the samples of a profile be told. Before hak_profile_start. */
void hkc_otel_tell(hak_profile_options *options);
/* Returns whether this system has such probes. */
bool hkc_otel_there(void);

#endif

/* hakmem serve: what processes hold, over HTTP, for browsers, Prometheus and pprof. */
#ifndef HKR_SERVE_H
#define HKR_SERVE_H

#include "report.h"

/* place: as for hkr_listen(). named: processes, sockets or files; none = every process of this user that
 * listens. Runs until SIGINT or SIGTERM. Returns the exit status, and has said what was wrong. */
int hkr_serve(const char *place, char *const *named, size_t count, const hkr_options *options);

#endif

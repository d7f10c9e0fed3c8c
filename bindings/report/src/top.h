/* hakmem top, hakmem attach. */
#ifndef HKR_TOP_H
#define HKR_TOP_H

#include "report.h"

/* what: as for hkr_source_find. Runs until the user quits; where standard output is no terminal, shows it
 * once. Returns the exit status, and has said what was wrong. */
int hkr_top(const char *what, double interval, const hkr_options *options);
/* The report itself, into `out`. 0; 1 = there is none, and that was said; -1 = `out` failed. */
int hkr_snapshot(const char *what, FILE *out);

#endif

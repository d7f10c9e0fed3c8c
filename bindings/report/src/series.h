/* What of reports becomes series of numbers over time: of processes, the parts of their memory, contexts and labels;
 * none of stacks, of which there are too many. */
#ifndef HKR_SERIES_H
#define HKR_SERIES_H

#include "report.h"

typedef struct hkr_family {
    const char *name, *help;
    const char *unit; /* of UCUM: "By", "1" */
    bool counter;     /* the name then ends with "_total" */
} hkr_family;

/* One number. Keys are unique in their family; values have no bytes that a terminal could take for commands but
 * newlines. */
typedef struct hkr_point {
    const hkr_report *report;
    const char *keys[2], *values[2]; /* NULL = there is no such one */
    double value;
} hkr_point;

typedef struct hkr_series_sink {
    bool (*family)(void *user, const hkr_family *family); /* false ends it */
    bool (*point)(void *user, const hkr_family *family, const hkr_point *point);
    void *user;
} hkr_series_sink;

/* Each family, and behind it its points. false = a function said so, or no memory. */
bool hkr_each_series(hkr_report *const *reports, size_t count, const hkr_series_sink *sink);

#endif
